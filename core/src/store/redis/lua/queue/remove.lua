-- Drop a task: its run, its successor, its entry in the intake, its throttle window.
-- keys:    the queue's
-- args:    1 id, 2 version that it must have, or ""
-- returns: {@REMOVED} | {@ABSENT} | {@OTHER_VERSION, version}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include intake.lua
-- include succeed.lua

local id, wanted = ARGV[1], tonumber(ARGV[2])
check_live()
local window = redis.call('ZSCORE', KEYS[@WINDOW], id)
local entry = intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id)
fetch({ id })
local main, successor = mains[id], successors[id]
local version = successor and successor[@VERSION] or main and main[@VERSION] or 0
if wanted and not (main or entry) then
  return { @ABSENT }
elseif wanted and version ~= wanted then
  return { @OTHER_VERSION, version }
end

-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
if main then
  if successor then
    if successor[@NODE] then
      post(@NODE_CANCELLED, successor[@NODE], 0)
    end
    drop_body(successor)
    successors[id] = false
  end
  if main[@NODE] then
    post(@NODE_CANCELLED, main[@NODE], 0)
  end
  note_end(main)
  happen(@EVENT_REMOVED, id, main)
  drop_body(main)
  leave_place(id)
  mains[id], stands[touch(id)] = false, false
  write()
end
if window then
  redis.call('ZREM', KEYS[@WINDOW], id)
end
if entry then
  redis.call('ZREM', KEYS[@INTAKE], id)
end
keep()
if message_count > 0 then
  wake()
end
send_hints()
local removed = main or entry
return { removed and @REMOVED or @ABSENT }
