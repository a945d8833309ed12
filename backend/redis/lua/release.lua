-- Gives a lease up. It follows bury.lua.
--
-- KEYS[1]  the lock
-- KEYS[2]  the tombstones
-- ARGV[1]  the owner
-- ARGV[2]  how long a tombstone is kept, in milliseconds; 0: none is needed
-- ARGV[3]  the channel on which waiters listen
--
-- Returns  {1} released, {0} the lock is free, {-1} it is another's

local holder = redis.call('GET', KEYS[1])
local status = 0
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[3], '') -- a hint, which a user may be forbidden to send
  status = 1
elseif holder then
  status = -1
end

bury(KEYS[2], ARGV[1], ARGV[2])
return {status}
