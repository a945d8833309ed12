-- Waits in the queue for a lock of a quorum, or says that it is the caller's turn.
-- It follows before.lua.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the turn: the ticket for which the lock is kept
-- KEYS[4]  the tombstones
-- ARGV[1]  the owner of the waiter's attempt
-- ARGV[2]  its ticket
-- ARGV[3]  the channel on which waiters listen
-- ARGV[4]  how long a turn lasts, in milliseconds
-- ARGV[5]  how long the queue outlives this call, in milliseconds
--
-- Returns  {1}                       it is the caller's turn, or the lock is its own,
--                                    or this owner was released before
--          {0, milliseconds, place}  another's, or kept for another: what is left of
--                                    that (-1: no end), how many are before the caller

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] or redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  return {1}
end
local left
if not holder then
  -- Nobody passed it on: a term ended, or a lock was deleted by hand.
  local turn = redis.call('GET', KEYS[3])
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not turn and first and before(first, ARGV[2]) then
    offer(KEYS[2], KEYS[3], ARGV[3], ARGV[4])
    turn = first
  end
  if not turn or not before(turn, ARGV[2]) then
    redis.call('ZREM', KEYS[2], ARGV[2])
    redis.pcall('SET', KEYS[3], ARGV[2], 'PX', ARGV[4])
    return {1}
  end
  left = redis.call('PTTL', KEYS[3])
else
  left = redis.call('PTTL', KEYS[1])
end

local place = redis.call('ZRANK', KEYS[2], ARGV[2])
if not place then
  redis.call('ZADD', KEYS[2], string.match(ARGV[2], '^%d+'), ARGV[2])
  place = redis.call('ZRANK', KEYS[2], ARGV[2])
end
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return {0, left, place}
