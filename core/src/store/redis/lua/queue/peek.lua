-- The tasks that come next. Reads only.
-- keys:    the queue's
-- args:    1 at most so many
-- returns: {@TASKS, then per task what tell.lua says}

-- include record.lua
-- include intake.lua
-- include tell.lua
-- include tell_many.lua

tell_due(0, tonumber(ARGV[1]))
return reply
