-- Gives a lease up, and the lock to the first in line. It follows bury.lua and line.lua.
--
-- KEYS     as in line.lua
-- ARGV[1]  the owner
-- ARGV[2]  how long a tombstone is kept, in milliseconds; 0: none is needed
-- ARGV[3]  the channel on which those listen who stand in no line
-- ARGV[4]  the owner's own place in the line; empty: none
-- ARGV[5]  the longest term of one who is passed the lock, in milliseconds
-- ARGV[6]  how long the counter outlives this call, in milliseconds
--
-- Returns  {1} released, {0} the lock is free, {-1} it is another's

if ARGV[4] ~= '' then
  redis.call('ZREM', KEYS[4], ARGV[4])
end
local holder = redis.call('GET', KEYS[1])
local status = 0
if holder == ARGV[1] then
  if not pass(tonumber(ARGV[5]), ARGV[6]) then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', ARGV[3], '') -- a hint, which a user may be forbidden to send
  end
  status = 1
elseif holder then
  status = -1
end

bury(KEYS[3], ARGV[1], ARGV[2])
return {status}
