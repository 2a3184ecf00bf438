-- Take all permits of a lock if nobody else has any. Never waits; the line is passed.
-- keys:    HOLDERS, META, RECORDS
-- args:    1 token, 2 how many permits there are
-- returns: {@UPGRADED, fence} | {@BUSY, 0, false} | {@GONE, fence, born, broken, foreign 0 or 1}
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'born', 'broken')
local expiry = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], ARGV[1]) or 0)
local record = redis.call('HGET', KEYS[@RECORDS], ARGV[1])
local weight, fence, rest = string.match(record or '', '^(%d+) (%d+)( .*)$')
if expiry <= now or not weight then
  -- include permits_absence.lua
  return permits_absence(meta)
end
-- Done by an earlier copy of this request, or a writer's from the beginning.
if weight == ARGV[2] then
  return { @UPGRADED, tonumber(fence) }
end

local after_now = string.format('(%.0f', now)
if #redis.call('ZRANGE', KEYS[@HOLDERS], after_now, '+inf', 'BYSCORE', 'LIMIT', 0, 2) > 1 then
  return { @BUSY, 0, false }
end
-- Above all whom it excludes now.
local newest = math.max((tonumber(meta[1]) or 0) + 1, now_us)
redis.call('HSET', KEYS[@RECORDS], ARGV[1], string.format('%s %.0f%s', ARGV[2], newest, rest))
redis.call('HSET', KEYS[@META], 'fence', string.format('%.0f', newest), 'heaviest', ARGV[2], 'used', ARGV[2])
return { @UPGRADED, newest }
