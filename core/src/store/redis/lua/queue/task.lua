-- Shared: the tasks that a script touches. They are changed here and stored by write(), so that a batch is
-- as if done one by one, but with one call for all writes of a kind. Needs record.lua.

-- id -> task; false if there is none.
local mains, successors = {}, {}
-- Field of the body hash -> the body to store; false if it goes.
local bodies = {}
-- id -> the set in which it is stored, true if that is not known; the set in which it will be, false if none.
local stood, stands, scores = {}, {}, {}
local touched, touched_count, is_touched = {}, 0, {}
-- Whether a consumer has something new to do: something became ready, or due earlier than all before.
local chance, earlier, first_due = false, false, nil

local function touch(id)
  if not is_touched[id] then
    is_touched[id] = true
    touched_count = touched_count + 1
    touched[touched_count] = id
  end
end

local function fetch(ids)
  for first = 1, #ids, 1000 do
    local found = redis.call('HMGET', KEYS[3], unpack(ids, first, math.min(first + 999, #ids)))
    for i, packed in ipairs(found) do
      local id = ids[first + i - 1]
      if mains[id] == nil then
        local task = packed and cmsgpack.unpack(packed)
        mains[id] = task
        if task then
          stood[id] = true
          if task[@HAS_SUCCESSOR] then
            successors[id] = cmsgpack.unpack(redis.call('HGET', KEYS[3], string.format('\1%s', id)))
          end
        end
      end
    end
  end
end

local function body_of(field)
  if bodies[field] == nil then
    return redis.call('HGET', KEYS[4], field) or ''
  end
  return bodies[field] or ''
end

local function put(id, task)
  mains[id] = task
  touch(id)
  local due = task[@DUE]
  if due <= now then
    sequence = sequence + 1
    stands[id], scores[id] = @READY, (255 - task[@PRIORITY]) * 2 ^ 45 + sequence
    chance = true
    return
  end
  stands[id], scores[id] = @SCHEDULED, due
  if not first_due then
    local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
    first_due = tonumber(first[2]) or math.huge
  end
  if due < first_due then
    chance, earlier, first_due = true, true, due
  end
end

-- The end of main: its successor takes its place, if there is one.
local function succeed(id)
  local main, successor = mains[id], successors[id]
  if not successor then
    mains[id], stands[id], bodies[id] = false, false, false
    touch(id)
    return
  end
  local parked = string.format('\1%s', id)
  bodies[id], bodies[parked], successors[id] = body_of(parked), false, false
  successor[@SETTLED], successor[@VERDICT], successor[@REPLACES] = main[@SETTLED], main[@VERDICT], nil
  put(id, successor)
end

local function is_replaced(id)
  return successors[id] and successors[id][@REPLACES] == 1
end

-- A successor takes the place of a retry: the receipt is spent, and no settlement of it counts any more. If it
-- is settled already, that is still repeated.
local function supplant(id)
  local main = mains[id]
  if main[@RECEIPT] ~= 0 then
    main[@SETTLED], main[@VERDICT], main[@RECEIPT] = main[@RECEIPT], @SUPPLANTED, 0
  end
  succeed(id)
end
