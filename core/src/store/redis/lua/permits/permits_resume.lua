-- Swap the token of a lease of permits that was handed over. A handle works once: the old token is gone then.
-- keys:    HOLDERS, META, RECORDS, ENDED: of the new token, or of the old one if it is an undo
-- args:    1 old token, 2 new token, 3 owner, 4 undo 0 or 1: takes an earlier swap back, also one that is yet to come
-- returns: {@RESUMED, fence, ttl ms, weight, limit} | {@GONE, fence, born, broken, foreign 0 or 1}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'born', 'broken')
local old = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], ARGV[1]) or 0)
local new = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], ARGV[2]) or 0)
local records = redis.call('HMGET', KEYS[@RECORDS], ARGV[1], ARGV[2])
local record = old > now and records[1] or new > now and records[2]
-- A lease whose record the server has forgotten cannot go on: nobody knows its fence.
if not record or not meta[1] or ARGV[4] == '0' and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  -- include permits_absence.lua
  return permits_absence(meta)
end

local weight, fence, since = string.match(record, '^(%d+) (%d+) (%d+) ')
if old > now then
  redis.call('HSET', KEYS[@RECORDS], ARGV[2], string.format('%s %s %s %s', weight, fence, since, ARGV[3]))
  redis.call('ZADD', KEYS[@HOLDERS], old, ARGV[2])
  redis.call('ZREM', KEYS[@HOLDERS], ARGV[1])
  redis.call('HDEL', KEYS[@RECORDS], ARGV[1])
end
if ARGV[4] == '1' then
  redis.call('SET', KEYS[@ENDED], '1', 'PX', @ENDED_TTL)
end
return { @RESUMED, tonumber(fence), math.max(old, new) - now, tonumber(weight), tonumber(meta[3]) or 0 }
