-- Shared: claims tasks, gives a repeated claim the same ones again, and registers who finds none. Needs
-- take.lua and due.lua.

-- What the claim answers begins with its code; `given` is what a repetition needs: ids and receipts.
local function give(reply, given, id, body, left)
  local length, main = #reply, mains[id]
  reply[length + 1], reply[length + 2], reply[length + 3], reply[length + 4] =
    id, packed[id] or cmsgpack.pack(main), body or '', left
  add(given, id, main[@RECEIPT])
end

-- Puts up to `max` tasks under a lease.
local function claim_tasks(max, lease, reply, given)
  promote()
  local taken = take(max)
  for _, id in ipairs(taken) do
    stands[id], scores[id] = @CLAIMED, now + lease
    touch(id)
  end
  write()
  if #taken > 0 then
    local found = redis.call('HMGET', KEYS[4], unpack(taken))
    for i, id in ipairs(taken) do
      give(reply, given, id, found[i], lease)
    end
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
    local main, ends = mains[id], tonumber(redis.call('ZSCORE', KEYS[7], id) or 0)
    if main and main[@RECEIPT] == before[i + 1] and ends > now then
      give(reply, {}, id, redis.call('HGET', KEYS[4], id), ends - now)
    end
  end
end

-- Registers the waiter; how many come before it.
local function register(waiter)
  if waiter == '' then
    return 0
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[11], '-inf', now)
  redis.call('ZADD', KEYS[11], now + @IDLE_LIVE, waiter)
  redis.call('PEXPIRE', KEYS[11], @IDLE_LIVE)
  return redis.call('ZRANK', KEYS[11], waiter)
end

-- What a claim says that has nothing to give.
local function give_nothing(reply, waiter)
  if paused then
    add(reply, @PAUSED, register(waiter))
  else
    add(reply, @EMPTY, next_due())
    reply[#reply + 1] = register(waiter)
  end
end
