-- Stop, or go on, giving out tasks.
-- keys:    the queue's
-- args:    1 "1" to stop, "0" to go on
-- returns: {@SET}

-- include record.lua
-- include wake.lua
-- include settings.lua
-- include intake.lua
-- include due.lua

-- Read only so that one of another type fails before anything is written.
local is_due = next_due() == 0
paused = ARGV[1] == '1'
write_settings()
keep_record()
if is_due then
  wake()
end
return { @SET }
