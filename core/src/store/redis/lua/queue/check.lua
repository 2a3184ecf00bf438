-- Shared: a key of another type fails here, before the first write.

-- How many ids live.
local function check_live()
  redis.call('HLEN', KEYS[3])
  redis.call('HLEN', KEYS[4])
  return redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) + redis.call('ZCARD', KEYS[7])
end

local function check_dead()
  redis.call('ZCARD', KEYS[8])
  redis.call('HLEN', KEYS[9])
end
