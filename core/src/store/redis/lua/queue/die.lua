-- Shared: how tasks die.

-- include succeed.lua
-- include happen.lua
-- include outbox.lua

-- Dead records that are not stored yet: in order, and by receipt.
local deaths, dead_now = {}, {}

-- The task becomes a dead record under `receipt`. `nameless`: it has an id that no task may have and nobody can ask
-- for. What `expired` has a set of its own: it pushes no failure out.
local function record_death(id, task, reason, receipt, expired, nameless)
  died = died + 1
  if task[@NODE] then
    post(@NODE_DEAD, task[@NODE], 0)
  end
  happen(@EVENT_DEAD, id, task, reason)
  if expired then
    expired_size = expired_size + task[@SIZE]
  else
    dead_size = dead_size + task[@SIZE]
  end
  task[@RECEIPT], task[@REASON], task[@DIED_AT] = receipt, reason, now
  task[@ID], task[@CONSUMER], task[@NAMELESS] = id, task[@CONSUMER] or '', nameless or false
  if task[@PROGRESS] then
    task[@PROGRESS] = false
  end
  deaths[#deaths + 1] = { task, expired }
  dead_now[receipt] = task
end

-- Main becomes a dead record, and its successor takes its place.
local function die(id, reason, receipt, expired)
  if receipt == 0 then
    receipt = next_number()
  end
  leave_place(id)
  record_death(id, mains[id], reason, receipt, expired)
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

-- Stores the dead records.
local function write_deaths()
  if #deaths == 0 then
    return
  end
  for _, death in ipairs(deaths) do
    local task, expired = death[1], death[2]
    local receipt = string.format('%.0f', task[@RECEIPT])
    if expired then
      redis.call('ZADD', KEYS[@EXPIRED], now, receipt)
    else
      redis.call('ZADD', KEYS[@DEAD], now, receipt)
    end
    redis.call('HSET', KEYS[@GRAVE], string.format('r%s', receipt), cmsgpack.pack(task))
    if not task[@NAMELESS] then
      local newest = string.format('i%s', task[@ID])
      local older = redis.call('HGET', KEYS[@GRAVE], newest)
      redis.call('HSET', KEYS[@GRAVE], newest, receipt)
      if older then
        redis.call('HSET', KEYS[@GRAVE], string.format('o%s', receipt), older, string.format('n%s', older), receipt)
      end
    end
  end
  trim_at, lives_anew = 1, true
end
