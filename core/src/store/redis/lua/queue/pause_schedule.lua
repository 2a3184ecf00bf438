-- Pause a schedule, or let it go on: the slots of the pause are not meant.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    1 id, 2 "1" to pause it, "0" to let it go on
-- returns: {@SET} | {@ABSENT}

-- include record.lua
-- include wake.lua
-- include check.lua
-- include keep.lua
-- include schedule.lua

local id, pauses = ARGV[1], tonumber(ARGV[2])
check_live()
check_schedules()
local schedule = schedule_of(id)
if not schedule then
  return { @ABSENT }
elseif schedule[@IS_PAUSED] == pauses then
  return { @SET }
end
schedule[@IS_PAUSED], schedule[@FRESH], schedule[@NEXT] = pauses, 1, pauses == 1 and @NEVER or now
set_schedule(id, schedule)
local is_earlier = write_schedules()
keep()
if is_earlier then
  wake()
end
return { @SET }
