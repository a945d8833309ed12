-- What the scripts of the queue have in common: who waits for a lock of a quorum
-- stands in a queue on every node, a sorted set of tickets. A ticket begins with the
-- time at which its owner came, in microseconds, and is unique, so all nodes agree
-- on the order. It grants nothing: who is first is told, and kept the lock for.

-- before says whether ticket a is ahead of b, which may be empty: nobody's.
local function before(a, b)
  local x, y = tonumber(string.match(a, '^%d+')), tonumber(string.match(b, '^%d+'))
  if not y then
    return true
  end
  return x ~= nil and (x < y or x == y and a < b)
end

-- offer takes the first out of the queue, keeps the lock for it for so many
-- milliseconds, and tells it so. It says whether there was one.
local function offer(queue, turn, channel, ms)
  local first = redis.pcall('ZPOPMIN', queue)[1] -- which a user may be forbidden
  if not first then
    return false
  end
  redis.pcall('SET', turn, first, 'PX', ms) -- memory may be short: then it is first come, first served
  redis.pcall('PUBLISH', channel, first)
  return true
end

