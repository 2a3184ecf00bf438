-- Shared: how tasks die. Needs task.lua and dead.lua.

-- Dead records that are not stored yet: in order, and by receipt; and the newest receipt of an id.
local deaths, dead_now, newest = {}, {}, {}

-- The task becomes a dead record under `receipt`. `older` is the id's newest record so far; false for an id
-- that no task may have and nobody can ask for.
local function record_death(id, task, body, reason, receipt, older)
  died = died + 1
  dead_size = dead_size + task[@SIZE]
  task[@RECEIPT], task[@REASON], task[@DIED_AT] = receipt, reason, now
  task[@ID], task[@OLDER] = id, older
  deaths[#deaths + 1] = { task, body }
  dead_now[receipt] = task
end

local function older_of(id, receipt)
  local older = newest[id] or redis.call('HGET', KEYS[9], string.format('i%s', id)) or ''
  newest[id] = string.format('%.0f', receipt)
  return older
end

-- Main becomes a dead record, and its successor takes its place.
local function die(id, reason, receipt)
  if receipt == 0 then
    receipt = next_number()
  end
  record_death(id, mains[id], body_of(id), reason, receipt, older_of(id, receipt))
  succeed(id)
end

-- The dead record with this receipt, if there is one.
local function dead_of(receipt)
  if dead_now[receipt] then
    return dead_now[receipt]
  end
  local packed_dead = redis.call('HGET', KEYS[9], string.format('r%.0f', receipt))
  return packed_dead and cmsgpack.unpack(packed_dead)
end

-- Stores the dead records.
local function write_deaths()
  if #deaths == 0 then
    return
  end
  for _, death in ipairs(deaths) do
    local task, body = death[1], death[2]
    local receipt = string.format('%.0f', task[@RECEIPT])
    redis.call('ZADD', KEYS[8], now, receipt)
    redis.call('HSET', KEYS[9], string.format('r%s', receipt), cmsgpack.pack(task),
      string.format('b%s', receipt), body)
    if task[@OLDER] then
      redis.call('HSET', KEYS[9], string.format('i%s', task[@ID]), receipt)
    end
  end
  trim_dead()
end
