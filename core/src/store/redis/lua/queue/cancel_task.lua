-- Shared: tasks that are cancelled.

-- include intake.lua
-- include succeed.lua

-- Ids of throttle windows and of entries of the intake that go with them.
local lost_windows, lost_entries = {}, {}

-- Ends a task that was fetched, with its successor; whether there was one, or an entry of the intake, and whether it runs:
-- then it is told.
local function cancel(id)
  local entry = intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id)
  if entry then
    lost_entries[#lost_entries + 1] = id
  end
  if redis.call('ZSCORE', KEYS[@WINDOW], id) then
    lost_windows[#lost_windows + 1] = id
  end
  local main, successor = mains[id], successors[id]
  local runs = main and tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0) > now
  if successor then
    if successor[@NODE] then
      post(@NODE_CANCELLED, successor[@NODE], 0)
    end
    drop_body(successor)
    successors[id] = false
  end
  if runs then
    widen(main)
    main[@HAS_SUCCESSOR], main[@CANCELLED] = false, 1
    touch(id)
  elseif main then
    end_cancelled(id)
  end
  return main or entry, runs
end

local function write_cancelled()
  for i = 1, #lost_windows, @CHUNK do
    redis.call('ZREM', KEYS[@WINDOW], unpack(lost_windows, i, math.min(i + @CHUNK_REST, #lost_windows)))
  end
  for i = 1, #lost_entries, @CHUNK do
    redis.call('ZREM', KEYS[@INTAKE], unpack(lost_entries, i, math.min(i + @CHUNK_REST, #lost_entries)))
  end
end
