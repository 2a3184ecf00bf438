-- Shared: the dead records that are stored. Needs record.lua.

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

-- Drops the oldest ones beyond the caps, at most @DEAD_TRIM.
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
