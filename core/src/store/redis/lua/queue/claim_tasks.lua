-- Shared: claims tasks, gives a repeated claim the same ones again, and registers who finds none.

-- include due.lua
-- include take.lua

-- Puts up to `max` tasks under a lease of `consumer`. They are appended to `reply`, and what a repetition needs, ids and
-- receipts, to `given`.
local function claim_tasks(max, lease, consumer, reply, given)
  promote()
  local taken = take(max)
  if #taken == 0 then
    write()
    return
  end
  -- As text once: the server would write a number anew for each task.
  local ends = string.format('%.0f', now + lease)
  local names = {}
  for i, id in ipairs(taken) do
    local number, main = touch(id), mains[id]
    stands[number], scores[number] = @CLAIMED, ends
    -- Without a gap before it.
    main[@BACKOFF], main[@TURN], main[@CONSUMER] = main[@BACKOFF] or 0, main[@TURN] or 0, consumer
    names[i] = main[@BODY]
  end
  write()
  local length, found = #reply, redis.call('HMGET', KEYS[@BODY], unpack(names))
  for i, id in ipairs(taken) do
    reply[length + 1], reply[length + 2], reply[length + 3], reply[length + 4] =
      id, packed[id], found[i] or '', lease
    length = length + 4
    given[i * 2 - 1], given[i * 2] = id, mains[id][@RECEIPT]
  end
end

-- Gives those again that a call was given before, as far as they are still under that lease.
local function give_again(before, reply)
  local ids = {}
  for i = 1, #before, 2 do
    ids[#ids + 1] = before[i]
  end
  fetch(ids)
  for i = 1, #before, 2 do
    local id = before[i]
    local main, ends = mains[id], tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0)
    if main and main[@RECEIPT] == before[i + 1] and ends > now then
      local length = #reply
      reply[length + 1], reply[length + 2] = id, cmsgpack.pack(main)
      reply[length + 3], reply[length + 4] = redis.call('HGET', KEYS[@BODY], main[@BODY]) or '', ends - now
    end
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
