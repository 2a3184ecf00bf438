-- Give permits back and offer them to those who are next.
-- keys:    1 holders, 2 records, 3 meta, 4 line, 5 waiters; 6 ended, if the acquire was sent again
-- args:    1 token, 2 acquire was sent again 0 or 1, 3 the lease's fence or ""
-- returns: {@RELEASED} | {@GONE, fence, born, broken, foreign 0 or 1}
local token, own_fence = ARGV[1], ARGV[3]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[3], 'fence', 'used', 'limit', 'born', 'broken')
local expiry = redis.call('ZSCORE', KEYS[1], token)

-- include permits_absence.lua

if not expiry or tonumber(expiry) <= now then
  return permits_absence(meta)
end

-- include permits_offer.lua
-- include permits_end.lua

local ended, ended_weight = ended_leases(now)
local weight, fence = string.match(redis.call('HGET', KEYS[2], token) or '', '^(%d+) (%d+) ')
-- The lease has ended before, and permits were offered to its token anew, for a late copy of its acquire.
local gone = own_fence ~= '' and fence ~= own_fence and permits_absence(meta)
local used = (tonumber(meta[2]) or 0) - ended_weight - (tonumber(weight) or 0)
local chosen, dead = successors(now, meta, used, nil)
redis.call('ZREM', KEYS[1], token)
redis.call('HDEL', KEYS[2], token)
drop_holders(ended)
hand_on(now_us, meta, used, chosen, dead)
if ARGV[2] == '1' then
  permits_end(now)
end
wake_all(chosen)
return gone or { @RELEASED }
