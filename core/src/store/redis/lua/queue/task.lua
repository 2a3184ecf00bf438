-- Shared: the tasks that a script touches. They are changed here and stored by write(), so that a batch is
-- as if done one by one, but with one call for all writes of a kind.

-- include record.lua
-- include widen.lua

-- id -> task; false if there is none.
local mains, successors = {}, {}
-- id -> the key under which it is counted; and keys whose records will be asked for. Most queues have none.
local key_of, with_keys = {}, {}
-- Name of a body -> what to store; false if it goes. A body is stored once, under the version that its task had then,
-- and is never moved: whoever has the task's record finds it, dead or alive.
local bodies, body_names, body_count = {}, {}, 0
-- id -> the set in which it is stored, true if that is not known.
local stood = {}
-- The ids to store, and the number of each; by that number the set in which it will be, false if none, and its score
-- there: one table that goes by id costs several that go by numbers.
local touched, touched_count, numbers, stands, scores = {}, 0, {}, {}, {}
-- Whether a consumer has something new to do: something became ready, or due earlier than all before.
local chance, earlier, first_due = false, false, nil

local function touch(id)
  local number = numbers[id]
  if not number then
    number = touched_count + 1
    touched_count, touched[number], numbers[id] = number, id, number
  end
  return number
end

local function fetch(ids)
  for first = 1, #ids, @CHUNK do
    local found = redis.call('HMGET', KEYS[@STATE], unpack(ids, first, math.min(first + @CHUNK_REST, #ids)))
    for i, packed in ipairs(found) do
      local id = ids[first + i - 1]
      if mains[id] == nil then
        local task = packed and cmsgpack.unpack(packed)
        mains[id] = task
        if task then
          stood[id] = true
          if task[@KEY] then
            key_of[id], with_keys[#with_keys + 1] = task[@KEY], task[@KEY]
          end
          if task[@HAS_SUCCESSOR] then
            successors[id] = cmsgpack.unpack(redis.call('HGET', KEYS[@STATE], string.format('\1%s', id)))
          end
        end
      end
    end
  end
end

local function set_body(name, body)
  if bodies[name] == nil then
    body_count = body_count + 1
    body_names[body_count] = name
  end
  bodies[name] = body
end

local function give_body(task, body)
  if body ~= '' then
    -- As text once: the server would write a number anew for each command.
    task[@SIZE], task[@BODY] = #body, cmsgpack.pack(task[@VERSION])
    set_body(task[@BODY], body)
  end
end

local function drop_body(task)
  if task[@BODY] ~= 0 then
    set_body(task[@BODY], false)
  end
end

local function has_body(task, body)
  if task[@SIZE] ~= #body then
    return false
  end
  return body == '' or body == (bodies[task[@BODY]] or redis.call('HGET', KEYS[@BODY], task[@BODY]))
end

-- Notes a failed attempt; the last @HISTORY_MAX are kept: when, and why.
local function add_failure(task, at, reason)
  widen(task)
  local history = task[@HISTORY] or {}
  history[#history + 1], history[#history + 2] = at, reason
  if #history > @HISTORY_MAX * 2 then
    history = { unpack(history, 3) }
  end
  task[@HISTORY] = history
end
