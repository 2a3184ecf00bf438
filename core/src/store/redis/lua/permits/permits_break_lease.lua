-- Take the permits from all who have some, and offer them to those who are next.
-- keys:    1 holders, 2 meta, 3 line, 4 waiters, 5 records
-- args:    none
-- returns: {@BROKEN} | {@FREE}
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[2], 'fence', 'heaviest', 'limit')
if redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf') == 0 then
  return { @FREE }
end

-- include line.lua
-- include permits_offer.lua

local chosen, dead, drowsy = successors(now, meta, 0, nil)
-- Read only so that records of another type fail before anything is written.
redis.call('HGET', KEYS[5], '')
redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[5])
hand_on(now_us, meta, 0, 0, chosen, dead)
redis.call('HSET', KEYS[2], 'broken', meta[1] or '0')
redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, redis.call('PTTL', KEYS[2])))
wake_all(hints_for(chosen, drowsy))
return { @BROKEN }
