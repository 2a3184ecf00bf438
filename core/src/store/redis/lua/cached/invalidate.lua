-- Forget a cached value. Who computes one now has begun with what was before, so its lease is broken: it cannot
-- store, and the next waiter computes.
-- keys:    LOCK, META, LINE, WAITERS, VALUE
-- args:    none
-- returns: {@INVALIDATED}
local holder = redis.call('GET', KEYS[@LOCK])
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[@VALUE], 'took')

-- include hand_off.lua

local hints = {}
if holder then
  local fence = redis.call('HGET', KEYS[@META], 'fence')
  hints = hand_off(redis.call('TIME'), false)
  if fence then
    redis.call('HSET', KEYS[@META], 'broken', fence)
  end
end
redis.call('DEL', KEYS[@VALUE])
wake_all(hints)
return { @INVALIDATED }
