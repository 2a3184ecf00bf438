-- Shared: remember the token as ended, so that a late copy of its acquire changes nothing.
local function permits_end(now)
  redis.call('SET', KEYS[@ENDED], '1', 'PX', @ENDED_TTL)
  redis.call('HSET', KEYS[@META], 'ended_until', string.format('%.0f', now + @ENDED_TTL))
  if redis.call('PTTL', KEYS[@META]) < @ENDED_TTL then
    redis.call('PEXPIRE', KEYS[@META], @META_TTL)
  end
end
