-- What a waiter has to wait for. It changes nothing.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner of the waiter's attempt
--
-- Returns  {1}                nothing: the key is free, or this owner's already
--          {0, milliseconds}  another's: what is left of the term (-1: it has
--                             none)

local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then
  return {1}
end
return {0, redis.call('PTTL', KEYS[1])}
