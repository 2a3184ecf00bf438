-- Drop a schedule; the tasks that it has made stay.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    1 id
-- returns: {@REMOVED} | {@ABSENT}

-- include record.lua
-- include check.lua
-- include keep.lua
-- include schedule.lua

local id = ARGV[1]
check_live()
check_schedules()
local before = schedule_of(id)
if before then
  set_schedule(id, false)
  write_schedules()
end
keep()
return { before and @REMOVED or @ABSENT }
