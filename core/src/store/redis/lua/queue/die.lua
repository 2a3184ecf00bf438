-- Shared: how tasks die. Needs succeed.lua and dead.lua.

-- Dead records that are not stored yet: in order, and by receipt; and the newest receipt of an id.
local deaths, dead_now, newest = {}, {}, {}

-- The task becomes a dead record under `receipt`. `older` is the id's newest record so far; false for an id
-- that no task may have and nobody can ask for. What `expired` has a set of its own: it pushes no failure out.
local function record_death(id, task, reason, receipt, older, expired)
  died = died + 1
  if expired then
    expired_size = expired_size + task[@SIZE]
  else
    dead_size = dead_size + task[@SIZE]
  end
  task[@RECEIPT], task[@REASON], task[@DIED_AT] = receipt, reason, now
  task[@ID], task[@OLDER] = id, older
  deaths[#deaths + 1] = { task, expired }
  dead_now[receipt] = task
end

local function older_of(id, receipt)
  local older = newest[id] or redis.call('HGET', KEYS[9], string.format('i%s', id)) or ''
  newest[id] = string.format('%.0f', receipt)
  return older
end

-- Main becomes a dead record, and its successor takes its place.
local function die(id, reason, receipt, expired)
  if receipt == 0 then
    receipt = next_number()
  end
  record_death(id, mains[id], reason, receipt, older_of(id, receipt), expired)
  succeed(id)
end

-- Whether main has expired. Then it is dead, with what it had failed of.
local function expire(id)
  local main = mains[id]
  if main[@EXPIRES] == 0 or main[@EXPIRES] > now then
    return false
  end
  local before = main[@REASON]
  die(id, before == '' and '@EXPIRED_REASON' or string.format('@EXPIRED_AFTER%s', before), main[@RECEIPT], true)
  return true
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
    local task, expired = death[1], death[2]
    local receipt = string.format('%.0f', task[@RECEIPT])
    if expired then
      redis.call('ZADD', KEYS[12], now, receipt)
    else
      redis.call('ZADD', KEYS[8], now, receipt)
    end
    redis.call('HSET', KEYS[9], string.format('r%s', receipt), cmsgpack.pack(task))
    if task[@OLDER] then
      redis.call('HSET', KEYS[9], string.format('i%s', task[@ID]), receipt)
    end
  end
  trim_at, lives_anew = 1, true
end
