-- Shared: what pop, peek, get and list tell of tasks: id, state, packed, body, ms left of the lease, due ms of
-- the successor or -1.

-- include intake.lua

local reply, bodies_size, has_bodies = { @TASKS }, 0, true
-- How many were told, and whether there is no room for more.
local told, is_full = 0, false

local function tell(id, state, packed_task, body, left, successor_due)
  local length = #reply
  told = told + 1
  reply[length + 1], reply[length + 2], reply[length + 3] = id, state, packed_task
  reply[length + 4], reply[length + 5], reply[length + 6] = body or '', left, successor_due
end

-- Whether a body of this size may be told: @MAX_REPLY_BYTES in all, unless one alone is larger.
local function fits(size)
  if not has_bodies then
    return true
  end
  is_full = is_full or (#reply > 1 and bodies_size + size > @MAX_REPLY_BYTES)
  bodies_size = bodies_size + size
  return not is_full
end

local function tell_live(id, state, left)
  local packed_task = redis.call('HGET', KEYS[@STATE], id)
  local task = packed_task and cmsgpack.unpack(packed_task)
  if not task or not fits(task[@SIZE]) then
    return
  end
  local successor_due = -1
  if task[@HAS_SUCCESSOR] then
    local packed_successor = redis.call('HGET', KEYS[@STATE], string.format('\1%s', id))
    successor_due = packed_successor and cmsgpack.unpack(packed_successor)[@DUE] or -1
  end
  tell(id, state, packed_task, has_bodies and redis.call('HGET', KEYS[@BODY], task[@BODY]), left, successor_due)
end

local function tell_intake(id, score)
  local due = intake_due(score)
  local state = due <= now and @READY or @SCHEDULED
  tell(id, state, cmsgpack.pack({ 0, due, 0, 0, @INTAKE_MAX_ATTEMPTS, 0, 0, 0, 0, 0, '', 0, 0 }), '', 0, -1)
end

-- If its id begins with `prefix`.
local function tell_dead(receipt, prefix)
  local packed_dead = redis.call('HGET', KEYS[@GRAVE], string.format('r%s', receipt))
  local dead = packed_dead and cmsgpack.unpack(packed_dead)
  if dead and string.sub(dead[@ID], 1, #prefix) == prefix and fits(dead[@SIZE]) then
    tell(dead[@ID], @DEAD, packed_dead, has_bodies and redis.call('HGET', KEYS[@BODY], dead[@BODY]), 0, -1)
  end
end
