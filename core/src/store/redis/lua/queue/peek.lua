-- The tasks that come next. Reads only.
-- keys:    the queue's
-- args:    1 at most so many
-- returns: {@TASKS, then per task what tell.lua says}

-- include record.lua
-- include walk.lua

most = tonumber(ARGV[1])
walk_due()
return reply
