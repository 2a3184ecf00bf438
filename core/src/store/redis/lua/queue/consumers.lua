-- Who waits for tasks, and who has some: of the first @LIST_LOOK calls that wait, and of the first @LIST_LOOK claims.
-- Reads only.
-- keys:    the queue's
-- args:    none
-- returns: {@CONSUMERS, then per consumer: consumer, calls that wait, claims}

-- include record.lua

local consumers, waiters, claims = {}, {}, {}

local function count(consumer, counts)
  if not waiters[consumer] then
    consumers[#consumers + 1] = consumer
    waiters[consumer], claims[consumer] = 0, 0
  end
  counts[consumer] = counts[consumer] + 1
end

local idle = redis.call('ZRANGE', KEYS[@IDLE], now + 1, '+inf', 'BYSCORE', 'LIMIT', 0, @LIST_LOOK)
for _, waiter in ipairs(idle) do
  count(string.match(waiter, '^%x+ %d+ (.*)$') or '', waiters)
end
local ids = redis.call('ZRANGE', KEYS[@CLAIMED], now + 1, '+inf', 'BYSCORE', 'LIMIT', 0, @LIST_LOOK)
for _, packed_task in ipairs(#ids > 0 and redis.call('HMGET', KEYS[@STATE], unpack(ids)) or {}) do
  count(packed_task and cmsgpack.unpack(packed_task)[@CONSUMER] or '', claims)
end
local reply = { @CONSUMERS }
for _, consumer in ipairs(consumers) do
  local length = #reply
  reply[length + 1], reply[length + 2], reply[length + 3] = consumer, waiters[consumer], claims[consumer]
end
return reply
