-- Forget a cached value. Who computes one now has begun with what was before, so its lease is broken: it cannot
-- store, and the next waiter computes.
-- keys:    1 lock, 2 meta, 3 line, 4 waiters, 5 value
-- args:    none
-- returns: {@INVALIDATED}
local holder = redis.call('GET', KEYS[1])
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[5], 'took')

-- include line.lua
-- include hand_off.lua

local hints = {}
if holder then
  local fence = redis.call('HGET', KEYS[2], 'fence')
  hints = hand_off(redis.call('TIME'), false)
  if fence then
    redis.call('HSET', KEYS[2], 'broken', fence)
  end
end
redis.call('DEL', KEYS[5])
wake_all(hints)
return { @INVALIDATED }
