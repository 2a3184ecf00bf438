-- Shared: one item of an enqueue. Needs task.lua.

-- Options' text -> what it says; most items of a batch have the same.
local specs = {
  [''] = { due = now, priority = 0, max_attempts = @INTAKE_MAX_ATTEMPTS, expires = 0, policy = 'k' },
}

-- "i" and in how many ms, or "a" and at what time; priority; max_attempts; ms until it expires or 0; policy: "k"
-- keep, "r" replace, "d" debounce with its max_wait, "t" throttle with its window.
local function spec_of(options)
  local spec = specs[options]
  if not spec then
    local kind, due, priority, max_attempts, expires, policy, span =
      string.match(options, '^(%a)(%d+) (%d+) (%d+) (%d+) (%a)(%d+)$')
    due, expires = tonumber(due), tonumber(expires)
    spec = {
      due = kind == 'i' and now + due or due,
      priority = tonumber(priority),
      max_attempts = tonumber(max_attempts),
      expires = expires > 0 and now + expires or 0,
      policy = policy,
      span = tonumber(span),
    }
    specs[options] = spec
  end
  return spec
end

local function new_task(spec, body)
  local task = {
    next_number(), spec.due, spec.priority, 0, spec.max_attempts, now, spec.expires, 0, 0, 0, '', #body,
  }
  return task
end

-- A task that takes the place of a pending one.
local function next_task(spec, body, before)
  local task = new_task(spec, body)
  if spec.policy == 'd' then
    if before then
      task[@FIRST] = before[@FIRST]
    end
    task[@DUE] = math.min(spec.due, task[@FIRST] + spec.span)
  end
  return task
end

local function replace(id, main, spec, body)
  local task = next_task(spec, body, main)
  task[@SETTLED], task[@VERDICT] = main[@SETTLED], main[@VERDICT]
  if spec.policy == 'd' and body_of(id) == body then
    -- One is left in any case: it was asked for again.
    task[@ATTEMPTS] = math.min(main[@ATTEMPTS], math.max(task[@MAX_ATTEMPTS] - 1, 0))
  end
  bodies[id] = body
  put(id, task)
  return @REPLACED, task
end

-- Main is running, or has a successor already: the task comes after it, or instead of its retry.
local function park(id, main, spec, body)
  local before, replaces = successors[id], spec.policy == 'r' or spec.policy == 'd'
  if before and not replaces then
    before[@VERSION] = next_number()
    touch(id)
    return @KEPT, before
  end
  local task = next_task(spec, body, before)
  task[@REPLACES] = replaces and 1 or 0
  successors[id], bodies[string.format('\1%s', id)], main[@HAS_SUCCESSOR] = task, body, 1
  touch(id)
  local ends = redis.call('ZSCORE', KEYS[7], id)
  if replaces and (not ends or tonumber(ends) <= now) then
    supplant(id)
  end
  return before and @REPLACED or @SUCCESSOR, task
end

-- What becomes of a task whose id has no throttle window: the outcome, and the task if it was accepted.
local function enqueue(id, spec, body)
  local main = mains[id]
  if main then
    if main[@RECEIPT] ~= 0 or successors[id] then
      return park(id, main, spec, body)
    elseif spec.policy == 'r' or spec.policy == 'd' then
      return replace(id, main, spec, body)
    end
    main[@VERSION] = next_number()
    touch(id)
    return @KEPT, main
  end
  if max_len then
    if live >= max_len then
      return @FULL
    end
    live = live + 1
  end
  main, bodies[id] = next_task(spec, body, nil), body
  put(id, main)
  return @ADDED, main
end
