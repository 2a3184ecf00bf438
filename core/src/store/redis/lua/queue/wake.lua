-- Shared: hints one idle consumer, the last thing that a script does.

-- include record.lua

-- Those registered first among the live ones; read before the first write.
local idle = redis.call('ZRANGE', KEYS[@IDLE], now + 1, '+inf', 'BYSCORE', 'LIMIT', 0, 2)

local function wake(me)
  local chosen = idle[1]
  if chosen == me then
    chosen = idle[2]
  end
  if not chosen or paused then
    return
  end
  redis.call('ZREM', KEYS[@IDLE], chosen)
  -- A user without channel rights fails here, after all writes: the consumer's own clock wakes it later.
  local client, seq = string.match(chosen, '^(%x+) (%d+)')
  if client then
    redis.pcall('PUBLISH', '@CHANNELS' .. client, seq)
  end
end
