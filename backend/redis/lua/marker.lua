-- Writes the marker of a database, if it is still as it was seen.
--
-- KEYS[1]  the marker
-- ARGV[1]  the marker as it was seen; empty: there was none
-- ARGV[2]  the marker to be written
-- ARGV[3]  1: only into a database without any key
--
-- Returns  {1} written, {0} it is another by now, {-1} the database has keys
--
-- It never expires: what it says holds until the data is lost.

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return {0}
end
if ARGV[3] == '1' and redis.call('DBSIZE') > 0 then
  return {-1}
end
redis.call('SET', KEYS[1], ARGV[2])
return {1}
