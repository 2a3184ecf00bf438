-- Take the lock from whoever has it, cooldowns and foreign values included, and offer it to the next waiter.
-- keys:    LOCK, META, LINE, WAITERS
-- args:    none
-- returns: {@BROKEN} | {@FREE}
local value = redis.call('GET', KEYS[@LOCK])
if not value then
  return { @FREE }
end

-- include hand_off.lua

-- A foreign value or a cooldown ends no lease of ours: the last one ended before it.
local broken = ours(value) and value ~= '@COOLDOWN_MARKER' and redis.call('HGET', KEYS[@META], 'fence')
local left = redis.call('PTTL', KEYS[@LOCK])
local hints = hand_off(redis.call('TIME'), false)
if broken then
  redis.call('HSET', KEYS[@META], 'broken', broken)
  -- Who had it may come until then to be told.
  redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + left))
end
wake_all(hints)
return { @BROKEN }
