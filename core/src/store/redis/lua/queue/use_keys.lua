-- Shared: keys, where a task has one. Most queues have none, and a server makes each function anew with each call: those
-- that keys need are made when they are needed.

-- include task.lua

-- How many keys have changed; how many tasks came into line that were held.
local changed_count, pulled_count = 0, 0
local leave_key, enter_key, run_key, change_key, key_record, free_at, throttle, write_keys, promote_keys, heal_keys

local function make_keys()
  -- include throttle.lua
  -- include promote_keys.lua
  return leave_key, enter_key, run_key, change_key, key_record, free_at, throttle, write_keys, promote_keys, heal_keys
end

local function use_keys()
  if not leave_key then
    leave_key, enter_key, run_key, change_key, key_record, free_at, throttle, write_keys, promote_keys, heal_keys = make_keys()
  end
end

-- A task that had a place has it no more.
local function leave_place(id)
  if not key_of[id] then
    return
  end
  if not leave_key and limits and limits[@COUNTS_RUNS] == 0 and stood[id] == @CLAIMED then
    -- Nobody counts what runs.
    key_of[id] = nil
    return
  end
  use_keys()
  leave_key(id)
end
