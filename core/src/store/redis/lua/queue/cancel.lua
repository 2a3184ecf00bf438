-- End a task: one that waits goes, one that runs is told, and ends unless it is acked.
-- keys:    the queue's
-- args:    1 id
-- returns: {@REMOVED} | {@RUNNING} | {@ABSENT}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include cancel_task.lua

local id = ARGV[1]
check_live()
fetch({ id })
local is_there, runs = cancel(id)
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
write()
write_cancelled()
keep()
if message_count > 0 then
  wake()
end
send_hints()
if runs then
  return { @RUNNING }
end
return { is_there and @REMOVED or @ABSENT }
