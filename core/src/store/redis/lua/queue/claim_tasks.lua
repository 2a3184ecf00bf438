-- Shared: claims tasks, and registers who finds none.

-- include due.lua
-- include take.lua

-- Puts up to `max` tasks under a lease of `consumer`. They are appended to `reply`, and what a repetition needs, ids and
-- receipts, to `given`.
local function claim_tasks(max, lease, consumer, reply, given)
  -- As text once: the server would write a number anew for each task.
  local ends = string.format('%.0f', now + lease)
  local function deliver(id)
    local number, main = touch(id), mains[id]
    stands[number], scores[number] = @CLAIMED, ends
    -- Without a gap before it.
    main[@BACKOFF], main[@TURN], main[@CONSUMER] = main[@BACKOFF] or 0, main[@TURN] or 0, consumer
  end
  local taken = take_all(max, deliver)
  if #taken == 0 then
    if limits then
      heal_keys()
    end
    return
  end
  local names = {}
  for i, id in ipairs(taken) do
    names[i] = mains[id][@BODY]
  end
  local length, found = #reply, redis.call('HMGET', KEYS[@BODY], unpack(names))
  for i, id in ipairs(taken) do
    reply[length + 1], reply[length + 2], reply[length + 3], reply[length + 4] =
      id, packed[id], found[i] or '', lease
    length = length + 4
    given[i * 2 - 1], given[i * 2] = id, mains[id][@RECEIPT]
  end
end

-- Registers the waiter; how many come before it.
local function register(waiter)
  if waiter == '' then
    return 0
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[@IDLE], '-inf', now)
  redis.call('ZADD', KEYS[@IDLE], now + @IDLE_LIVE, waiter)
  redis.call('PEXPIRE', KEYS[@IDLE], @IDLE_LIVE)
  return redis.call('ZRANK', KEYS[@IDLE], waiter)
end

-- Whether another may claim something now, or soon: who waits does not know of a rate or a key that has to wait since.
local function is_left()
  local _, opens = gate()
  if earlier or opens == math.huge then
    return earlier
  end
  return redis.call('ZCARD', KEYS[@READY]) > 0
    or (limits and redis.call('ZCOUNT', KEYS[@KEY_WAITS], '-inf', now + @KEY_SOON) > 0)
end

-- What a claim says that has nothing to give.
local function give_nothing(reply, waiter)
  local length = #reply
  if paused then
    reply[length + 1], reply[length + 2] = @PAUSED, register(waiter)
  else
    reply[length + 1] = @EMPTY
    reply[length + 2], reply[length + 4] = next_due()
    reply[length + 3] = register(waiter)
  end
end
