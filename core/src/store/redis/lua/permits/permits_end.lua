-- Shared: remember the token as ended, so that a late copy of its acquire changes nothing.
local function permits_end(now)
  redis.call('SET', KEYS[6], '1', 'PX', @ENDED_TTL)
  redis.call('HSET', KEYS[2], 'ended_until', string.format('%.0f', now + @ENDED_TTL))
  if redis.call('PTTL', KEYS[2]) < @ENDED_TTL then
    redis.call('PEXPIRE', KEYS[2], @META_TTL)
  end
end
