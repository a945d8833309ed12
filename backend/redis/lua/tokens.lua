-- Draws a token from a counter, for Tokens.
--
-- KEYS[1]  the counter: the last token drawn, in decimal
-- ARGV[1]  the floor: a token, 0 for none
-- ARGV[2]  how long the counter outlives this server's clock's reaching it, in
--          milliseconds
--
-- Returns  the token: more than the last one, and at least the floor and this
--          server's clock in microseconds
--
-- So a counter that is lost goes on above all that was drawn by the clock, and
-- one that floors have pushed ahead of the clock is kept until the clock has
-- caught up. '%.0f' is exact to 2^53; Lua's own conversion rounds at 14 digits.

local text = redis.call('GET', KEYS[1]) or '0'
local last = string.find(text, '^%d+$') and tonumber(text)
if not last or last > 2 ^ 53 then
  return redis.error_reply('ERR the token counter is not an integer up to 2^53')
end
if last == 2 ^ 53 then
  return redis.error_reply('ERR the token counter has reached 2^53')
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token = math.max(last + 1, now, tonumber(ARGV[1]))
local life = math.floor((token - now) / 1000) + tonumber(ARGV[2])
text = string.format('%.0f', token)
redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', life))
return text
