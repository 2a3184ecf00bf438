-- Shared: one item of an enqueue.

-- include end_lease.lua
-- include spec.lua

-- A new task. `before` is a pending one whose place it takes, if there is one.
local function next_task(id, spec, before)
  local task = {
    next_number(), spec.due, spec.priority, 0, spec.max_attempts, now, spec.expires, 0, 0, 0, '', 0, 0, 0, 0,
  }
  if spec.policy == 'd' then
    if before then
      task[@FIRST] = before[@FIRST]
    end
    task[@DUE] = math.min(spec.due, task[@FIRST] + spec.span)
  end
  if spec.key ~= '' then
    widen(task, @KEY)
    task[@KEY] = spec.key
  end
  if spec.node then
    mark(task, spec.node)
  end
  happen(@EVENT_ADDED, id, task)
  return task
end

-- What is there stays as it is, but that it is the node of a flow from now on, if the other was to be one.
local function kept(id, task, spec)
  task[@VERSION] = next_number()
  if spec.node then
    mark(task, spec.node)
  end
  touch(id)
  return @KEPT, task
end

local function replace(id, main, spec, body)
  spend(main)
  local task = next_task(id, spec, main)
  task[@SETTLED], task[@VERDICT] = main[@SETTLED], main[@VERDICT]
  if main[@ASKED] then
    widen(task)
    task[@ASKED] = main[@ASKED]
  end
  take_over(task, main)
  if spec.policy == 'd' and has_body(main, body) then
    go_on(task, main)
    task[@SIZE], task[@BODY] = main[@SIZE], main[@BODY]
  else
    drop_body(main)
    give_body(task, body)
  end
  hold_back(task, main[@BACKOFF])
  put(id, task, stays(main, task))
  return @REPLACED, task
end

-- Main is running, or has a successor already: the task comes after it, or instead of its retry.
local function park(id, spec, body, runs)
  local before, replaces = successors[id], spec.policy == 'd' and 2 or spec.policy == 'r' and 1 or 0
  if replaces == 2 and has_body(mains[id], body) then
    replaces = 3
  end
  if before and replaces == 0 then
    return kept(id, before, spec)
  end
  local task = next_task(id, spec, before)
  if before then
    drop_body(before)
    take_over(task, before)
  end
  give_body(task, body)
  follow(id, task, replaces)
  if not runs then
    supplant(id, true)
  end
  return before and @REPLACED or @SUCCESSOR, task
end

-- Those that have expired among the first in line, and the first that are due, count no longer.
local function make_room()
  check_dead()
  local ready = redis.call('ZRANGE', KEYS[@READY], 0, @EXPIRE_MAX - 1)
  local scheduled = redis.call('ZRANGE', KEYS[@SCHEDULED], 0, @EXPIRE_MAX - 1 - #ready)
  fetch(ready)
  fetch(scheduled)
  for _, id in ipairs(ready) do
    if mains[id] then
      expire(id)
    end
  end
  for i = 1, @EXPIRE_MAX - #ready do
    if mains[scheduled[i] or ''] then
      expire(scheduled[i])
    end
  end
end

-- What becomes of a task whose id has no throttle window: the outcome, and the task if it was accepted.
local function enqueue(id, spec, body)
  local main, runs = find(id)
  if main then
    if runs and spec.policy == 's' and not successors[id] then
      return @SKIPPED, main
    elseif runs or successors[id] then
      return park(id, spec, body, runs)
    end
    if spec.policy == 'r' or spec.policy == 'd' then
      return replace(id, main, spec, body)
    end
    return kept(id, main, spec)
  end
  -- There was room for a flow with all its nodes.
  if max_len and live >= max_len and not spec.node then
    return @FULL
  end
  main = next_task(id, spec, nil)
  give_body(main, body)
  put(id, main)
  return @ADDED, main
end
