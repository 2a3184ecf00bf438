-- Shared: dead records. Needs task.lua.

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

-- Takes a stored dead record away. The id's next older one is its newest then, if it is still there.
local function drop_dead(dead)
  local receipt = string.format('%.0f', dead[@RECEIPT])
  dead_size = dead_size - dead[@SIZE]
  redis.call('ZREM', KEYS[8], receipt)
  redis.call('HDEL', KEYS[9], string.format('r%s', receipt), string.format('b%s', receipt))
  if not dead[@OLDER] then
    return
  end
  local index = string.format('i%s', dead[@ID])
  if redis.call('HGET', KEYS[9], index) == receipt then
    if dead[@OLDER] ~= '' and redis.call('HEXISTS', KEYS[9], string.format('r%s', dead[@OLDER])) == 1 then
      redis.call('HSET', KEYS[9], index, dead[@OLDER])
    else
      redis.call('HDEL', KEYS[9], index)
    end
  end
end

-- Drops the oldest dead records beyond the caps.
local function trim_dead()
  local excess = redis.call('ZCARD', KEYS[8]) - (dead_max or @DEAD_MAX)
  local oldest = redis.call('ZRANGE', KEYS[8], 0, @DEAD_TRIM - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local aged = tonumber(oldest[i + 1]) <= now - (dead_age or @DEAD_AGE)
    if excess <= 0 and not aged and dead_size <= (dead_bytes or @DEAD_BYTES) then
      return
    end
    excess = excess - 1
    local packed_dead = redis.call('HGET', KEYS[9], string.format('r%s', oldest[i]))
    if packed_dead then
      drop_dead(cmsgpack.unpack(packed_dead))
    else
      redis.call('ZREM', KEYS[8], oldest[i])
    end
  end
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
