-- Starts the term of a held lease anew and asserts its token.
--
-- KEYS[1]  the lock
-- KEYS[2]  the token counter
-- ARGV[1]  the owner
-- ARGV[2]  the term in milliseconds
-- ARGV[3]  the token, 0 for none
-- ARGV[4]  how long the counter outlives this call, in milliseconds
--
-- Returns  {1} renewed, {0} the lock is gone, {-1} it is another's
--
-- A lock that is gone is never made again: somebody may have held it meanwhile.
-- The counter may be gone (evicted, deleted), and later grants must stay above
-- this token all the same.

local holder = redis.call('GET', KEYS[1])
if not holder then
  return {0}
end
if holder ~= ARGV[1] then
  return {-1}
end
local text = redis.call('GET', KEYS[2]) or '0'
local last = string.find(text, '^%d+$') and tonumber(text)
if not last or last > 2 ^ 53 then
  return redis.error_reply('ERR the token counter of this lock is not an integer up to 2^53')
end

if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if last < tonumber(ARGV[3]) then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
else
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return {1}
