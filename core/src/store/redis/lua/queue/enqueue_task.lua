-- Shared: one item of an enqueue.

-- include end_lease.lua

-- Options' text -> what it says; most items of a batch have the same.
local specs = {
  [''] = { due = now, priority = 0, max_attempts = @INTAKE_MAX_ATTEMPTS, expires = 0, policy = 'k', key = '' },
}

-- "i" and in how many ms, or "a" and at what time; priority; max_attempts; ms until it expires or 0; policy: "k"
-- keep, "s" skip, "r" replace, "d" debounce with its max_wait, "t" throttle with its window; perhaps a key.
local function spec_of(options)
  local spec = specs[options]
  if not spec then
    local kind, due, priority, max_attempts, expires, policy, span, key =
      string.match(options, '^(%a)(%d+) (%d+) (%d+) (%d+) (%a)(%d+) ?(.*)$')
    due, expires = tonumber(due), tonumber(expires)
    spec = {
      due = kind == 'i' and now + due or due,
      priority = tonumber(priority),
      max_attempts = tonumber(max_attempts),
      expires = expires > 0 and now + expires or 0,
      policy = policy,
      span = tonumber(span),
      key = key,
    }
    specs[options] = spec
  end
  return spec
end

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
    widen(task)
    task[@KEY] = spec.key
  end
  happen(@EVENT_ADDED, id, task)
  return task
end

-- What is there stays as it is.
local function kept(id, task)
  task[@VERSION] = next_number()
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
    return kept(id, before)
  end
  local task = next_task(id, spec, before)
  if before then
    drop_body(before)
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
    return kept(id, main)
  end
  if max_len and live >= max_len then
    return @FULL
  end
  main = next_task(id, spec, nil)
  give_body(main, body)
  put(id, main)
  return @ADDED, main
end
