-- Stop, or go on, giving out tasks.
-- keys:    the queue's
-- args:    1 "1" to stop, "0" to go on
-- returns: {@SET}

-- include record.lua
-- include wake.lua
-- include settings.lua
-- include check.lua
-- include keep.lua
-- include due.lua

check_live()
-- Those who asked meanwhile do not know when anything is due: one of them asks again.
local resumes = paused and ARGV[1] == '0' and next_due() >= 0
paused = ARGV[1] == '1'
write_settings()
keep()
if resumes then
  wake()
end
return { @SET }
