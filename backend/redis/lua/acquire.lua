-- One attempt to hold a key.
--
-- KEYS[1]  the lock: a string, the owner; any Redlock client understands it
-- KEYS[2]  the token counter: the last token owned, in decimal
-- KEYS[3]  the tombstones: a sorted set of owners that were released already
-- ARGV[1]  the owner
-- ARGV[2]  the term in milliseconds
-- ARGV[3]  the client's clock at the start of the attempt, in microseconds
-- ARGV[4]  the floor that the caller insists on: a token, 0 for none
-- ARGV[5]  how far from this server's clock ARGV[3] may lie, in microseconds
-- ARGV[6]  how long the counter outlives this call, in milliseconds
--
-- Returns  {1, token}               granted, or this owner's already
--          {0, last, milliseconds}  another's: the last token owned, and what
--                                   is left of the term (-1: it has none)
--          {-1, last}               refused: this owner was released before
--
-- Tokens go out by '%.0f', which is exact to 2^53; Lua's own conversion rounds
-- at 14 digits. Whatever can fail does so before the lock is written.

local holder = redis.call('GET', KEYS[1])
local text = redis.call('GET', KEYS[2]) or '0'
local last = string.find(text, '^%d+$') and tonumber(text)
if not last or last > 2 ^ 53 then
  return redis.error_reply('ERR the token counter of this lock is not an integer up to 2^53')
end
if holder and holder ~= ARGV[1] then
  return {0, text, redis.call('PTTL', KEYS[1])}
end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  return {-1, text}
end

local token = math.max(last, tonumber(ARGV[4]))
if not holder or last == 0 then
  if last == 2 ^ 53 then
    return redis.error_reply('ERR the token counter of this lock has reached 2^53')
  end
  -- The clock is a hint for a new grant only: a repeated call has the token of
  -- the first one. It is held near this server's clock, so that a client whose
  -- clock is wrong can't push tokens ahead of everybody else's.
  local time = redis.call('TIME')
  local now, reach = time[1] * 1000000 + time[2], tonumber(ARGV[5])
  local hint = math.min(math.max(tonumber(ARGV[3]), now - reach), now + reach)
  token = math.max(last + 1, hint, token)
end
token = string.format('%.0f', token)
redis.call('SET', KEYS[2], token, 'PX', ARGV[6])

if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1, token}
