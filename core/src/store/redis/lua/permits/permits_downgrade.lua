-- Give back all permits of a lease but some, and offer them to those who are next.
-- keys:    1 holders, 2 records, 3 meta, 4 line, 5 waiters
-- args:    1 token, 2 weight to keep
-- returns: {@DOWNGRADED} | {@GONE, fence, born, broken, foreign 0 or 1}
local token, keep = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[3], 'fence', 'used', 'limit', 'born', 'broken')
local expiry = tonumber(redis.call('ZSCORE', KEYS[1], token) or 0)
local weight, rest = string.match(redis.call('HGET', KEYS[2], token) or '', '^(%d+)( .*)$')
if expiry <= now or not weight then
  -- include permits_absence.lua
  return permits_absence(meta)
end
if tonumber(weight) <= keep then
  return { @DOWNGRADED }
end

-- include permits_offer.lua

local ended, ended_weight = ended_leases(now)
local used = (tonumber(meta[2]) or 0) - ended_weight - (weight - keep)
local chosen, dead = successors(now, meta, used, nil)
redis.call('HSET', KEYS[2], token, string.format('%.0f%s', keep, rest))
drop_holders(ended)
hand_on(now_us, meta, used, chosen, dead)
wake_all(chosen)
return { @DOWNGRADED }
