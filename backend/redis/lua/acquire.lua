-- One attempt to hold a key. With a queue it follows before.lua.
--
-- KEYS[1]  the lock: a string, the owner; any Redlock client understands it
-- KEYS[2]  the token counter: the last token owned, in decimal
-- KEYS[3]  the tombstones: a sorted set of owners that were released already
-- KEYS[4]  the marker, if the node is guarded
-- KEYS[5]  the queue, with a marker
-- KEYS[6]  the turn: the ticket for which the lock is kept, with a marker
-- ARGV[1]  the owner
-- ARGV[2]  the term in milliseconds
-- ARGV[3]  the client's clock at the start of the attempt, in microseconds
-- ARGV[4]  the floor that the caller insists on: a token, 0 for none
-- ARGV[5]  how far from this server's clock ARGV[3] may lie, in microseconds
-- ARGV[6]  how long the counter outlives this call, in milliseconds
-- ARGV[7]  with a marker: what it was when the client last looked
-- ARGV[8]  with a marker: 1 to compare it only and grant nothing
-- ARGV[9]  with a marker: the caller's ticket in the queue; empty: it has none
--
-- Returns  {1, token, time, first}        granted, or this owner's already: the
--                                         tokens from the first on were nobody's
--          {0, last, milliseconds, time}  another's, or kept for another: the last
--                                         token owned, and what is left of the term
--                                         (-1: it has none)
--          {-1, last, time}               refused: this owner was released
--                                         before; or only compared
--          {-2}                           the marker is another
--
-- The time is this server's, in microseconds. Tokens and times go out by '%.0f',
-- which is exact to 2^53; Lua's own conversion rounds at 14 digits. Whatever can
-- fail does so before the lock is written.

if KEYS[4] and redis.call('GET', KEYS[4]) ~= ARGV[7] then
  return {-2}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stamp = string.format('%.0f', now)
if KEYS[4] and ARGV[8] == '1' then
  return {-1, '0', stamp}
end

local holder = redis.call('GET', KEYS[1])
local text = redis.call('GET', KEYS[2]) or '0'
local last = string.find(text, '^%d+$') and tonumber(text)
if not last or last > 2 ^ 53 then
  return redis.error_reply('ERR the token counter of this lock is not an integer up to 2^53')
end
if holder and holder ~= ARGV[1] then
  return {0, text, redis.call('PTTL', KEYS[1]), stamp}
end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  return {-1, text, stamp}
end
if KEYS[6] and not holder then
  local turn = redis.call('GET', KEYS[6])
  if turn and before(turn, ARGV[9]) then
    return {0, text, redis.call('PTTL', KEYS[6]), stamp}
  end
  if turn then
    redis.call('DEL', KEYS[6])
  end
  if ARGV[9] ~= '' then
    redis.pcall('ZREM', KEYS[5], ARGV[9]) -- which a user may be forbidden
  end
end

local token = math.max(last, tonumber(ARGV[4]))
if not holder or last == 0 then
  if last == 2 ^ 53 then
    return redis.error_reply('ERR the token counter of this lock has reached 2^53')
  end
  -- The clock is a hint for a new grant only: a repeated call has the token of
  -- the first one. It is held near this server's clock, so that a client whose
  -- clock is wrong can't push tokens ahead of everybody else's.
  local reach = tonumber(ARGV[5])
  local hint = math.min(math.max(tonumber(ARGV[3]), now - reach), now + reach)
  token = math.max(last + 1, hint, token)
end
-- What lies between was never granted here, unless the counter was lost.
local first = last > 0 and math.min(last + 1, token) or token
first = string.format('%.0f', first)
token = string.format('%.0f', token)
redis.call('SET', KEYS[2], token, 'PX', ARGV[6])

if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1, token, stamp, first}
