-- Shared: whether somebody is to look after flows. A clock that was set back delays it no longer than it takes otherwise.

-- include record.lua

-- Whether it is the next flow's turn to have its tasks looked for.
local function is_walk_due()
  local at = outbox[@WALK_AT]
  return outbox[@LIVE_FLOWS] > 0 and (at <= now or at > now + @WALK_AGAIN)
end

-- Whoever gets tasks is told of messages only when there are many, or some time after the last step: the ends of short tasks
-- are worked off many at once, and one is not kept until a long task has ended.
local function are_flows_due(is_given)
  local count, since = outbox[@LAST_MESSAGE] - outbox[@FIRST_MESSAGE] + 1, outbox[@LAST_STEP]
  local is_told = not is_given or count >= @OUTBOX_MANY or since > now or now - since >= @OUTBOX_PAUSE
  return not paused and ((count > 0 and is_told) or is_walk_due())
end
