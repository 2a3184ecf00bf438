-- End a task: one that waits goes, one that runs is told, and ends unless it is acked.
-- keys:    the queue's
-- args:    1 id
-- returns: {@REMOVED} | {@RUNNING} | {@ABSENT}

-- include record.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include intake.lua
-- include succeed.lua

local id = ARGV[1]
check_live()
local window = redis.call('ZSCORE', KEYS[@WINDOW], id)
local entry = intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id)
local runs = tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0) > now
fetch({ id })
local main, successor = mains[id], successors[id]
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
if successor then
  drop_body(successor)
  successors[id] = false
end
if main and runs then
  widen(main)
  main[@HAS_SUCCESSOR], main[@CANCELLED] = false, 1
  touch(id)
elseif main then
  end_cancelled(id)
end
write()
if window then
  redis.call('ZREM', KEYS[@WINDOW], id)
end
if entry then
  redis.call('ZREM', KEYS[@INTAKE], id)
end
keep()
send_hints()
if main and runs then
  return { @RUNNING }
end
local removed = main or entry
return { removed and @REMOVED or @ABSENT }
