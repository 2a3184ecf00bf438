-- Shared: remember the token as ended, so that a late copy of its acquire changes nothing.
local function end_token(time)
  local until_ms = time[1] * 1000 + math.floor(time[2] / 1000) + @ENDED_TTL
  redis.call('SET', KEYS[@ENDED], '1', 'PX', @ENDED_TTL)
  redis.call('HSET', KEYS[@META], 'calm_until', '0', 'ended_until', string.format('%.0f', until_ms))
  redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + redis.call('PTTL', KEYS[@LOCK])))
end
