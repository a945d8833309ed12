-- Stands in line for a lock, or has it. It follows line.lua.
--
-- KEYS     as there
-- ARGV[1]  the owner
-- ARGV[2]  the term in milliseconds
-- ARGV[3]  the floor that the caller insists on: a token, 0 for none
-- ARGV[4]  how long the counter outlives this call, in milliseconds
-- ARGV[5]  the caller's place, as line.lua has it; empty: it can't hear of a grant,
--          and only looks
-- ARGV[6]  when it came, in microseconds of this server's clock; 0: now
-- ARGV[7]  the longest term of one who is passed the lock, in milliseconds
-- ARGV[8]  how long the line outlives this call, in milliseconds
--
-- Returns  {1, token, time}                      granted, or this owner's already
--          {0, milliseconds, place, came, time}  another's: what is left of the
--                                                term (-1: it has none), how many
--                                                are before the caller (-1: it
--                                                stands in no line), when it came
--          {-1}                                  this owner was released before

look()
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  return {-1}
end
local holder = redis.call('GET', KEYS[1])
if not holder then
  -- Nobody passed it on: a term ended, or a lock was deleted by hand. So it is
  -- the first one's.
  local head = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if head and head ~= ARGV[5] then
    if pass(tonumber(ARGV[7]), ARGV[4]) then
      holder = redis.call('GET', KEYS[1])
    else
      redis.call('DEL', KEYS[1])
    end
  end
end

if not holder then
  local token = grant(ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4])
  if not token then
    return redis.error_reply('ERR the lock can\'t be granted: its token counter is not below 2^53, or memory is short')
  end
  redis.call('ZREM', KEYS[4], ARGV[5])
  return {1, token, stamp}
end

if holder == ARGV[1] then
  -- The news of it was lost, or is on its way.
  local text = redis.call('GET', KEYS[2]) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  if not last or last > 2 ^ 53 then
    return redis.error_reply('ERR the token counter of this lock is not an integer up to 2^53')
  end
  local floor = tonumber(ARGV[3])
  if last == 0 then -- the counter was lost
    floor = math.max(floor, now)
  end
  if last < floor then
    text = string.format('%.0f', floor)
    redis.call('SET', KEYS[2], text, 'PX', ARGV[4])
  end
  redis.call('ZREM', KEYS[4], ARGV[5])
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1, text, stamp}
end

local left = redis.call('PTTL', KEYS[1])
if ARGV[5] == '' then
  return {0, left, -1, stamp, stamp}
end
local came = ARGV[6]
if came == '0' then
  came = stamp
end
redis.call('ZADD', KEYS[4], came, ARGV[5])
redis.call('PEXPIRE', KEYS[4], ARGV[8])
return {0, left, redis.call('ZRANK', KEYS[4], ARGV[5]), came, stamp}
