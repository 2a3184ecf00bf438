-- Shared: what the queue's own limits let go now.

-- include record.lua

-- How many tasks may go now, and from when on another may, us: 0 if one may now, math.huge if it depends on the end of a run.
local function gate()
  if not limits then
    return math.huge, 0
  elseif limits[@HELD_UNTIL] > now then
    return 0, limits[@HELD_UNTIL] * 1000
  end
  local free, opens = math.huge, 0
  if limits[@RATE_COUNT] > 0 then
    -- include rate.lua
    local gap, slack = pace(limits[@RATE_COUNT], limits[@RATE_PER], limits[@RATE_BURST])
    local tat = tat_of(limits[@RATE_TAT], limits[@RATE_COUNT], limits[@RATE_PER], limits[@RATE_BURST])
    free = math.max(math.floor((now_us + slack - math.max(tat, now_us)) / gap) + 1, 0)
    opens = free == 0 and tat - slack or 0
  end
  if limits[@MAX_RUNNING] > 0 then
    local left = limits[@MAX_RUNNING] - redis.call('ZCARD', KEYS[@CLAIMED])
    if left <= 0 then
      return 0, math.huge
    end
    free = math.min(free, left)
  end
  return free, opens
end
