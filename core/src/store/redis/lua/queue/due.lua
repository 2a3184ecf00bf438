-- Shared: when there will be something to claim.

-- include intake.lua
-- include gate.lua

-- When the first comes that may be claimed then, us, as far as the queue's own limits are nothing to it.
local function first_due_us()
  if redis.call('ZCARD', KEYS[@READY]) > 0 or (limits and limits[@KEY_SWEEP]) then
    return now_us
  end
  local first = redis.call('ZRANGE', KEYS[@SCHEDULED], 0, 0, 'WITHSCORES')
  local next = tonumber(first[2]) or math.huge
  if intake_size > 0 and not (max_len and live >= max_len) then
    first = redis.call('ZRANGE', KEYS[@INTAKE], 0, 0, 'WITHSCORES')
    next = math.min(next, first[2] and intake_due(first[2]) or next)
  end
  if limits then
    first = redis.call('ZRANGE', KEYS[@KEY_WAITS], 0, 0, 'WITHSCORES')
    next = math.min(next, first[2] and tonumber(first[2]) < @FORGET_BASE and tonumber(first[2]) or next)
  end
  return next * 1000
end

-- Microseconds until something is due, a lease ends, the intake has something that there is room for, a limit lets something
-- go, or a schedule is to be fired later; -1 if none of these. And when that slot is due, or -1.
local function next_due()
  local _, opens = gate()
  local next = math.max(first_due_us(), opens)
  if next > now_us then
    local ends = redis.call('ZRANGE', KEYS[@CLAIMED], 0, 0, 'WITHSCORES')
    next = math.min(next, (tonumber(ends[2]) or math.huge) * 1000)
  end
  local slot = -1
  if agenda_due > now and agenda_due < @NEVER and agenda_due * 1000 < next then
    next, slot = agenda_due * 1000, agenda_due
  end
  return next == math.huge and -1 or math.max(next - now_us, 0), slot
end
