-- What the scripts of the line have in common. A line is a sorted set of those who
-- wait for a lock, by the server's clock at which they came. Each is
--
--   id inbox term floor owner
--
-- its number at its inbox, the channel on which its process hears of grants, the
-- term it wants in milliseconds, the least token, and the owner, which may have
-- spaces.
--
-- KEYS[1]  the lock
-- KEYS[2]  the token counter
-- KEYS[3]  the tombstones
-- KEYS[4]  the line

local now, stamp -- the server's clock in microseconds, once it was looked at

local function look()
  if now then
    return
  end
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
  stamp = string.format('%.0f', now)
end

-- grant makes owner the holder, whoever was it before, and returns its token. It
-- says false, and has changed nothing but the counter, if it can't be.
local function grant(owner, term, floor, life)
  local text = redis.call('GET', KEYS[2]) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  if not last or last >= 2 ^ 53 then
    return false
  end
  local token = string.format('%.0f', math.max(last + 1, now, floor))
  local set = redis.pcall('SET', KEYS[2], token, 'PX', life)
  if not set.err then
    set = redis.pcall('SET', KEYS[1], owner, 'PX', term)
  end
  return not set.err and token
end

-- pass gives the lock to the first in line whose process hears of it, for most
-- milliseconds or less, and says whether there was one. If there was none, the
-- lock may be somebody's who does not know.
local function pass(most, life)
  for _ = 1, 100 do
    local head = redis.call('ZPOPMIN', KEYS[4])
    local id, inbox, term, floor, owner = string.match(head[1] or '', '^(%d+) (%S+) (%d+) (%d+) (.+)$')
    if not id then
      return false
    end
    look()
    term = math.min(tonumber(term), most)
    local token = grant(owner, term, tonumber(floor), life)
    if not token then
      redis.call('ZADD', KEYS[4], head[2], head[1])
      return false
    end
    local heard = redis.pcall('PUBLISH', inbox, table.concat({id, token, term, stamp}, ' '))
    if type(heard) ~= 'number' then -- the user may not: let them poll
      redis.call('ZADD', KEYS[4], head[2], head[1])
      return false
    end
    if heard > 0 then
      return true
    end
  end
  return false
end
