-- End a wait: remove the entry, and the permits if some were granted meanwhile.
-- keys:    1 holders, 2 records, 3 meta, 4 line, 5 waiters, 6 ended
-- args:    1 token
-- returns: {@LEFT}
local token = ARGV[1]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[3], 'fence', 'used', 'limit')

-- include permits_offer.lua
-- include permits_end.lua

local ended, ended_weight = ended_leases(now)
local record = redis.call('HGET', KEYS[2], token)
local expiry = tonumber(redis.call('ZSCORE', KEYS[1], token) or 0)
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[5], token)
local used = ended_weight and (tonumber(meta[2]) or 0) - ended_weight or 0
if expiry > now then
  used = used - (tonumber(string.match(record or '', '^%d+')) or 0)
end
-- Its entry may have held up lighter ones behind it.
local chosen, dead = successors(now, meta, used, token)
redis.call('ZREM', KEYS[4], token)
redis.call('HDEL', KEYS[5], token)
-- What has ended is dropped with its like: those are counted.
if expiry > now then
  redis.call('ZREM', KEYS[1], token)
  redis.call('HDEL', KEYS[2], token)
end
drop_holders(ended)
hand_on(now_us, meta, used, chosen, dead)
permits_end(now)
wake_all(chosen)
return { @LEFT }
