-- Shared: what comes after a task, or in its place.

-- include put.lua
-- include happen.lua
-- include outbox.lua
-- include hints.lua

-- Whether two have one priority and one key, or none: that is not stored everywhere.
local function is_alike(one, other)
  return one[@PRIORITY] == other[@PRIORITY] and (one[@KEY] or false) == (other[@KEY] or false)
end

-- Whether `task` stays where `before` stands, which waits: both are due, of one priority and one key. Somebody who asks
-- for a task all the time does not keep it from its turn.
local function stays(before, task)
  if is_alike(before, task) and before[@DUE] <= now and task[@DUE] <= now then
    task[@DUE] = before[@DUE]
    return true
  end
end

-- Gives a pending main another due.
local function move(id, due)
  local main = mains[id]
  if main[@DUE] <= now and due <= now then
    put(id, main, true)
  else
    main[@DUE] = due
    put(id, main)
  end
end

-- No enqueue brings a retry forward of its back-off.
local function hold_back(task, backoff)
  if backoff and backoff > now then
    task[@BACKOFF], task[@DUE] = backoff, math.max(task[@DUE], backoff)
  end
end

-- What is asked for again by debounce, with the same body, is the same task: its attempts go on. One is left in
-- any case.
local function go_on(task, before)
  task[@ATTEMPTS] = math.min(before[@ATTEMPTS], math.max(task[@MAX_ATTEMPTS] - 1, 0))
end

-- What replaces a node of a flow is that node, unless it is one itself.
local function take_over(task, before)
  if before[@NODE] and not task[@NODE] then
    mark(task, before[@NODE])
  end
end

-- Gives main a successor. `replaces`: 0 it waits until the run ends for good, 1 it takes a retry's place, 2 the
-- same by debounce, 3 that with main's body.
local function follow(id, task, replaces)
  local main = mains[id]
  task[@BACKOFF], task[@REPLACES] = 0, replaces
  main[@BACKOFF], main[@TURN], main[@CONSUMER], main[@HAS_SUCCESSOR] =
    main[@BACKOFF] or 0, main[@TURN] or 0, main[@CONSUMER] or '', 1
  successors[id] = task
  touch(id)
end

-- Those who wait for the end of a task that has ended are told.
local function note_end(task)
  for i = 1, task[@ASKED] and #task[@ASKED] or 0, 2 do
    hint(task[@ASKED][i])
  end
end

-- The end of main: its successor takes its place, if there is one; `place` is its place in line, as for put. The body
-- of main is the caller's to drop.
local function succeed(id, place)
  local main, successor = mains[id], successors[id]
  note_end(main)
  if not successor then
    leave_place(id)
    mains[id], stands[touch(id)] = false, false
    live = live - 1
    return
  end
  successors[id] = false
  successor[@SETTLED], successor[@VERDICT] = main[@SETTLED], main[@VERDICT]
  -- Without a gap before its key and its mark.
  successor[@REPLACES] = (successor[@KEY] or successor[@NODE]) and 0 or nil
  put(id, successor, place)
end

-- The end of a task that was cancelled while it ran.
local function end_cancelled(id)
  local main = mains[id]
  happen(@EVENT_CANCELLED, id, main)
  if main[@NODE] then
    post(@NODE_CANCELLED, main[@NODE], 0)
  end
  drop_body(main)
  succeed(id)
end

local function is_replaced(id)
  return successors[id] and successors[id][@REPLACES] ~= 0
end

-- No settlement of main's delivery counts any more. If it is settled already, that is still repeated.
local function spend(main)
  if main[@RECEIPT] ~= 0 then
    main[@SETTLED], main[@VERDICT], main[@RECEIPT] = main[@RECEIPT], @SUPPLANTED, 0
  end
end

-- A successor takes the place of a retry: the receipt is spent, but the back-off stays. `place` is main's place in
-- line, if it keeps that.
local function supplant(id, place)
  local main, successor = mains[id], successors[id]
  spend(main)
  if successor[@REPLACES] == 3 then
    go_on(successor, main)
  end
  hold_back(successor, main[@BACKOFF])
  if place == true then
    place = stays(main, successor)
  elseif not is_alike(main, successor) then
    place = nil
  end
  take_over(successor, main)
  drop_body(main)
  succeed(id, place)
end
