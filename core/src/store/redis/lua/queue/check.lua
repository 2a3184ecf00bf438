-- Shared: a key of another type fails here, before the first write.

-- include record.lua

local function check_dead()
  -- What has ended by itself weighs nothing.
  if redis.call('ZCARD', KEYS[@DEAD]) == 0 then
    dead_size = 0
  end
  if redis.call('ZCARD', KEYS[@EXPIRED]) == 0 then
    expired_size = 0
  end
  redis.call('HLEN', KEYS[@GRAVE])
end

local function check_keys()
  redis.call('ZCARD', KEYS[@HELD])
  redis.call('HLEN', KEYS[@KEY_RECORDS])
  redis.call('ZCARD', KEYS[@KEY_WAITS])
  redis.call('ZCARD', KEYS[@KEY_LIMITS])
end

local function check_live()
  redis.call('HLEN', KEYS[@STATE])
  redis.call('HLEN', KEYS[@BODY])
  live = redis.call('ZCARD', KEYS[@SCHEDULED]) + redis.call('ZCARD', KEYS[@READY]) + redis.call('ZCARD', KEYS[@CLAIMED])
  if limits then
    live = live + redis.call('ZCARD', KEYS[@HELD])
    check_keys()
  end
  if ends_at == 1 or (trim_at ~= 0 and trim_at <= now) then
    check_dead()
  end
end
