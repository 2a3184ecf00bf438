-- Take the lock from whoever has it, cooldowns and foreign values included, and offer it to the next waiter.
-- keys:    1 lock, 2 meta, 3 line, 4 waiters
-- args:    none
-- returns: {@BROKEN} | {@FREE}
local value = redis.call('GET', KEYS[1])
if not value then
  return { @FREE }
end

-- include line.lua
-- include hand_off.lua

-- A foreign value or a cooldown ends no lease of ours: the last one ended before it.
local broken = ours(value) and value ~= '@COOLDOWN_MARKER' and redis.call('HGET', KEYS[2], 'fence')
local left = redis.call('PTTL', KEYS[1])
local hints = hand_off(redis.call('TIME'), false)
if broken then
  redis.call('HSET', KEYS[2], 'broken', broken)
  -- Who had it may come until then to be told.
  redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, @META_BEYOND + left))
end
wake_all(hints)
return { @BROKEN }
