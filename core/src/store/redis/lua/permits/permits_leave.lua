-- End a wait: remove the entry, and the permits if some were granted meanwhile.
-- keys:    HOLDERS, META, LINE, WAITERS, RECORDS, ENDED
-- args:    1 token
-- returns: {@LEFT}
local token = ARGV[1]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit')

-- include permits_offer.lua
-- include permits_end.lua

local expiry = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], token) or 0)
local used, most, ended = held_permits(now, meta, expiry > now and token or nil)
-- Read only so that keys of another type fail before anything is written.
redis.call('HGET', KEYS[@RECORDS], token)
redis.call('HGET', KEYS[@WAITERS], token)
-- Its entry may have held up lighter ones behind it.
local chosen, dead, drowsy = successors(now, meta, used, token)
redis.call('ZREM', KEYS[@LINE], token)
redis.call('HDEL', KEYS[@WAITERS], token)
redis.call('ZREM', KEYS[@HOLDERS], token)
redis.call('HDEL', KEYS[@RECORDS], token)
drop_holders(ended)
hand_on(now_us, meta, used, most, chosen, dead)
permits_end(now)
wake_all(hints_for(chosen, drowsy))
return { @LEFT }
