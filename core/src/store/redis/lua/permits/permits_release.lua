-- Give permits back and offer them to those who are next.
-- keys:    HOLDERS, META, LINE, WAITERS, RECORDS; ENDED, if the acquire was sent again
-- args:    1 token, 2 acquire was sent again 0 or 1, 3 the lease's fence or ""
-- returns: {@RELEASED} | {@GONE, fence, born, broken, foreign 0 or 1}
local token, own_fence = ARGV[1], ARGV[3]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'born', 'broken')
local expiry = redis.call('ZSCORE', KEYS[@HOLDERS], token)

-- include permits_absence.lua

if not expiry or tonumber(expiry) <= now then
  if ARGV[2] == '1' then
    -- include leave_line.lua
    -- include permits_end.lua
    leave_line()
    permits_end(now)
  end
  return permits_absence(meta)
end

-- include permits_offer.lua
-- include permits_end.lua

local fence = string.match(redis.call('HGET', KEYS[@RECORDS], token) or '', '^%d+ (%d+) ')
-- The lease has ended before, and permits were offered to its token anew, for a late copy of its acquire.
local gone = own_fence ~= '' and fence ~= own_fence and permits_absence(meta)
if gone then
  -- include leave_line.lua
  -- That copy stands in line until it confirms, which nobody does.
  leave_line()
end
local used, most, ended = held_permits(now, meta, token)
local chosen, dead, drowsy = successors(now, meta, used, nil)
redis.call('ZREM', KEYS[@HOLDERS], token)
redis.call('HDEL', KEYS[@RECORDS], token)
drop_holders(ended)
hand_on(now_us, meta, used, most, chosen, dead)
if ARGV[2] == '1' then
  permits_end(now)
end
wake_all(hints_for(chosen, drowsy))
return gone or { @RELEASED }
