-- Shared: a key of another type fails here, before the first write. Needs record.lua.

local function check_dead()
  -- What has ended by itself weighs nothing.
  if redis.call('ZCARD', KEYS[8]) == 0 then
    dead_size = 0
  end
  if redis.call('ZCARD', KEYS[12]) == 0 then
    expired_size = 0
  end
  redis.call('HLEN', KEYS[9])
end

local function check_live()
  redis.call('HLEN', KEYS[3])
  redis.call('HLEN', KEYS[4])
  live = redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) + redis.call('ZCARD', KEYS[7])
  if ends_at == 1 or (trim_at ~= 0 and trim_at <= now) then
    check_dead()
  end
end
