-- Gives up a lease of a quorum, and its owner's place in the queue, and tells the
-- next. It follows bury.lua and before.lua.
--
-- KEYS[1]  the lock
-- KEYS[2]  the tombstones
-- KEYS[3]  the queue
-- KEYS[4]  the turn: the ticket for which the lock is kept
-- ARGV[1]  the owner
-- ARGV[2]  how long a tombstone is kept, in milliseconds; 0: none is needed
-- ARGV[3]  the channel on which waiters listen
-- ARGV[4]  the owner's ticket
-- ARGV[5]  how long a turn lasts, in milliseconds
--
-- Returns  {1} released, {0} the lock is free, {-1} it is another's

local led = redis.call('ZRANGE', KEYS[3], 0, 0)[1] == ARGV[4]
redis.call('ZREM', KEYS[3], ARGV[4])
local holder = redis.call('GET', KEYS[1])
local free, status = false, 0
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
  free, status = true, 1
elseif holder then
  status = -1
end
if not holder and redis.call('GET', KEYS[4]) == ARGV[4] then
  redis.call('DEL', KEYS[4])
  free = true
end

if free then
  if not offer(KEYS[3], KEYS[4], ARGV[3], ARGV[5]) then
    redis.pcall('PUBLISH', ARGV[3], '') -- a hint, which a user may be forbidden to send
  end
elseif led then
  local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if first then
    redis.pcall('PUBLISH', ARGV[3], '?' .. first)
  end
end

bury(KEYS[2], ARGV[1], ARGV[2])
return {status}
