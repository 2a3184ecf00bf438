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
if not schedule_of(id) then
  return { @ABSENT }
end
set_schedule(id, false)
write_schedules()
keep()
return { @REMOVED }
