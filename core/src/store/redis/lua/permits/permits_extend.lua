-- Prolong a lease of permits; never shortens it, unless it is to end exactly then.
-- keys:    HOLDERS, META, RECORDS
-- args:    1 token, 2 ttl ms, 3 exact 0 or 1, or none
-- returns: {@EXTENDED, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'born', 'broken')
local expiry = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], ARGV[1]) or 0)
if expiry <= now then
  -- include permits_absence.lua
  return permits_absence(meta)
end

local left = ARGV[3] == '1' and tonumber(ARGV[2]) or math.max(expiry - now, ARGV[2])
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[@RECORDS], ARGV[1])
if redis.call('PTTL', KEYS[@HOLDERS]) < left then
  redis.call('PEXPIRE', KEYS[@HOLDERS], left)
end
if redis.call('PTTL', KEYS[@RECORDS]) < left then
  redis.call('PEXPIRE', KEYS[@RECORDS], left)
end
redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + left, redis.call('PTTL', KEYS[@META])))
if now + left ~= expiry then
  redis.call('ZADD', KEYS[@HOLDERS], now + left, ARGV[1])
end
return { @EXTENDED, left }
