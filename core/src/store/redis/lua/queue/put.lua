-- Shared: makes tasks pending.

-- include turn.lua
-- include use_keys.lua

-- Makes main pending. A task that is due comes into the line at the end of its priority's; `place` is the
-- sequence of its turn if it comes back to it, and true if it stays where it stands.
local function put(id, task, place)
  local before, due = mains[id], task[@DUE]
  if not before then
    live = live + 1
  end
  if place ~= true then
    leave_place(id)
  end
  mains[id] = task
  if task[@PROGRESS] then
    task[@PROGRESS] = false
  end
  local number = touch(id)
  if due <= now then
    chance = true
    -- Without a gap before its turn.
    task[@BACKOFF] = task[@BACKOFF] or 0
    if place == true then
      task[@TURN] = before[@TURN] or 0
      return
    end
    if not place then
      sequence = sequence + 1
    end
    task[@TURN] = place or sequence
    stands[number], scores[number] = @READY, turn_of(task)
    if task[@KEY] then
      use_keys()
      stands[number] = enter_key(id, task) and @READY
    end
    return
  end
  stands[number], scores[number] = @SCHEDULED, due
  if not first_due then
    local first = redis.call('ZRANGE', KEYS[@SCHEDULED], 0, 0, 'WITHSCORES')
    first_due = tonumber(first[2]) or math.huge
  end
  if due < first_due then
    chance, earlier, first_due = true, true, due
  end
end
