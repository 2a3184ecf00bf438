-- Who has permits? Those whose leases end first, a bounded number. Reads only.
-- keys:    HOLDERS, RECORDS, LINE
-- args:    none
-- returns: {@FREE} | {@HELD, waiters, then of each: held as, fence, remaining ms, since s, owner, weight}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local after_now = string.format('(%.0f', now)
local held = redis.call('ZRANGE', KEYS[@HOLDERS], after_now, '+inf', 'BYSCORE', 'LIMIT', 0, @HOLDERS_MAX, 'WITHSCORES')
if #held == 0 then
  return { @FREE }
end

local reply = { @HELD, redis.call('ZCARD', KEYS[@LINE]) }
for i = 1, #held, 2 do
  local record = redis.call('HGET', KEYS[@RECORDS], held[i])
  local weight, fence, since, owner = string.match(record or '1 0 0 ', '^(%d+) (%d+) (%d+) (.*)$')
  local held_as = redis.call('ZSCORE', KEYS[@LINE], held[i]) and @AS_OFFER or @AS_LEASE
  reply[#reply + 1] = { held_as, tonumber(fence), held[i + 1] - now, tonumber(since), owner, tonumber(weight) }
end
return reply
