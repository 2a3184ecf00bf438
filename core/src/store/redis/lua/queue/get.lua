-- One task: the live one, else the intake's, else its newest dead record. Reads only.
-- keys:    the queue's
-- args:    1 id
-- returns: {@TASKS, what tell.lua says} | {@ABSENT}

-- include record.lua
-- include tell.lua
-- include held.lua

local id = ARGV[1]

-- Whether one that is due is held by its key.
local function is_held(task)
  return task[@KEY] and redis.call('ZSCORE', KEYS[@HELD], held_member(id, task))
end

local packed_task = redis.call('HGET', KEYS[@STATE], id)
if packed_task then
  local left = tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0) - now
  if left > 0 then
    tell_live(id, @CLAIMED, left)
  else
    local task = cmsgpack.unpack(packed_task)
    tell_live(id, task[@DUE] > now and @SCHEDULED or is_held(task) and @HELD_TASK or @READY, 0)
  end
  return reply
end
local score = intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id)
if score then
  tell_intake(id, score)
  return reply
end
local receipt = redis.call('HGET', KEYS[@GRAVE], string.format('i%s', id))
if receipt then
  tell_dead(receipt, '')
end
if #reply == 1 then
  return { @ABSENT }
end
return reply
