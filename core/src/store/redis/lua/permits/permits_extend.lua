-- Prolong a lease of permits; never shortens it.
-- keys:    1 holders, 2 records, 3 meta
-- args:    1 token, 2 ttl ms
-- returns: {@EXTENDED, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[3], 'fence', 'used', 'limit', 'born', 'broken')
local expiry = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if expiry <= now then
  -- include permits_absence.lua
  return permits_absence(meta)
end

local left = math.max(expiry - now, ARGV[2])
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[2], ARGV[1])
if redis.call('PTTL', KEYS[1]) < left then
  redis.call('PEXPIRE', KEYS[1], left)
end
if redis.call('PTTL', KEYS[2]) < left then
  redis.call('PEXPIRE', KEYS[2], left)
end
redis.call('PEXPIRE', KEYS[3], math.max(@META_TTL, 2 * left))
if now + left > expiry then
  redis.call('ZADD', KEYS[1], now + left, ARGV[1])
end
return { @EXTENDED, left }
