-- Take the permits from all who have some, and offer them to those who are next.
-- keys:    1 holders, 2 records, 3 meta, 4 line, 5 waiters
-- args:    none
-- returns: {@BROKEN} | {@FREE}
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[3], 'fence', 'used', 'limit')
if redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf') == 0 then
  return { @FREE }
end

-- include permits_offer.lua

local chosen, dead = successors(now, meta, 0, nil)
-- Read only so that records of another type fail before anything is written.
redis.call('HGET', KEYS[2], '')
redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
hand_on(now_us, meta, 0, chosen, dead)
redis.call('HSET', KEYS[3], 'broken', meta[1] or '0')
redis.call('PEXPIRE', KEYS[3], @META_TTL)
wake_all(chosen)
return { @BROKEN }
