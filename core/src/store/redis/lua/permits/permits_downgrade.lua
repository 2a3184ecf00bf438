-- Give back all permits of a lease but some, and offer them to those who are next.
-- keys:    HOLDERS, META, LINE, WAITERS, RECORDS
-- args:    1 token, 2 weight to keep, 3 the lease's fence or ""
-- returns: {@DOWNGRADED} | {@GONE, fence, born, broken, foreign 0 or 1}
local token, keep = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'born', 'broken')
local expiry = tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], token) or 0)
local weight, fence, rest = string.match(redis.call('HGET', KEYS[@RECORDS], token) or '', '^(%d+) (%d+)( .*)$')
if expiry <= now or not weight then
  -- include permits_absence.lua
  return permits_absence(meta)
end
-- A late copy takes nothing back from an upgrade that came after it, which gave the lease another fence.
if tonumber(weight) <= keep or (ARGV[3] or '') ~= '' and ARGV[3] ~= fence then
  return { @DOWNGRADED }
end

-- include permits_offer.lua

local used, most, ended = held_permits(now, meta, token)
used, most = used + keep, math.max(most, keep)
local chosen, dead, drowsy = successors(now, meta, used, nil)
redis.call('HSET', KEYS[@RECORDS], token, string.format('%.0f %s%s', keep, fence, rest))
drop_holders(ended)
hand_on(now_us, meta, used, most, chosen, dead)
wake_all(hints_for(chosen, drowsy))
return { @DOWNGRADED }
