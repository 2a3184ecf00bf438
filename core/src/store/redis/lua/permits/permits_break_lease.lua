-- Take the permits from all who have some, and offer them to those who are next.
-- keys:    HOLDERS, META, LINE, WAITERS, RECORDS
-- args:    none
-- returns: {@BROKEN} | {@FREE}
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit')
if redis.call('ZCOUNT', KEYS[@HOLDERS], string.format('(%.0f', now), '+inf') == 0 then
  return { @FREE }
end

-- include permits_offer.lua

local chosen, dead, drowsy = successors(now, meta, 0, nil)
-- Read only so that records of another type fail before anything is written.
redis.call('HGET', KEYS[@RECORDS], '')
redis.call('DEL', KEYS[@HOLDERS])
redis.call('DEL', KEYS[@RECORDS])
hand_on(now_us, meta, 0, 0, chosen, dead)
redis.call('HSET', KEYS[@META], 'broken', meta[1] or '0')
redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, redis.call('PTTL', KEYS[@META])))
wake_all(hints_for(chosen, drowsy))
return { @BROKEN }
