-- What the scripts that release have in common.
--
-- bury leaves a tombstone for an acquire of owner that may still be on its way:
-- for so many milliseconds, or none if that is 0. It comes last: a server short of
-- memory refuses it, and the lock is free then.
local function bury(tombs, owner, keep)
  local ms = tonumber(keep)
  if ms <= 0 then
    return
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', tombs, '-inf', string.format('%.0f', now))
  redis.call('ZADD', tombs, string.format('%.0f', now + ms), owner)
  if redis.call('PTTL', tombs) < ms then
    redis.call('PEXPIRE', tombs, keep)
  end
end

