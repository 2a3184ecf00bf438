-- Shared: when there will be something to claim.

-- include intake.lua

-- Microseconds until something is due, a lease ends, the intake has something that there is room for, or a schedule is to
-- be fired later; -1 if none of these. And when that slot is due, or -1.
local function next_due()
  if redis.call('ZCARD', KEYS[@READY]) > 0 then
    return 0, -1
  end
  local first = redis.call('ZRANGE', KEYS[@SCHEDULED], 0, 0, 'WITHSCORES')
  local next = tonumber(first[2]) or math.huge
  first = redis.call('ZRANGE', KEYS[@CLAIMED], 0, 0, 'WITHSCORES')
  next = math.min(next, tonumber(first[2]) or math.huge)
  if intake_size > 0 and not (max_len and live >= max_len) then
    first = redis.call('ZRANGE', KEYS[@INTAKE], 0, 0, 'WITHSCORES')
    next = math.min(next, first[2] and intake_due(first[2]) or next)
  end
  local slot = -1
  if agenda_due > now and agenda_due < math.min(next, @NEVER) then
    next, slot = agenda_due, agenda_due
  end
  return next == math.huge and -1 or math.max(next * 1000 - now_us, 0), slot
end
