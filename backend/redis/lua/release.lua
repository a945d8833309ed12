-- Gives a lease up.
--
-- KEYS[1]  the lock
-- KEYS[2]  the tombstones
-- ARGV[1]  the owner
-- ARGV[2]  how long a tombstone is kept, in milliseconds; 0: none is needed
-- ARGV[3]  the channel on which waiters listen
--
-- Returns  {1} released, {0} the lock is free, {-1} it is another's
--
-- A tombstone is for an acquire of this owner that may still be on its way. It
-- comes last: a server short of memory refuses it, and the lock is free then.

local holder = redis.call('GET', KEYS[1])
local status = 0
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[3], '') -- a hint, which a user may be forbidden to send
  status = 1
elseif holder then
  status = -1
end

local keep = tonumber(ARGV[2])
if keep > 0 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + keep), ARGV[1])
  if redis.call('PTTL', KEYS[2]) < keep then
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
  end
end
return {status}
