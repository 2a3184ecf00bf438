-- Take so many of a limiter by windows of the server's clock: now, or by a reservation that begins in time.
-- keys:    LIMITER; ENDED of whoever waits
-- args:    1 how many, 2 how many a window has, 3 us of a window, 4 us to wait at most or none,
--          5 token of whoever waits or none
-- returns: {@RESERVED, us until it begins} | {@REFUSED, us until a try succeeds} | @TAKEN

-- The key is a STRING: the beginning in us of the last window of which some were taken, plus how many were (a window has no
-- more than one per us); if the last take is a reservation, also its token.
if ARGV[4] and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  -- It was given up, and nobody waits for the answer.
  return { @REFUSED, 0 }
end
local stored = redis.call('GET', KEYS[@LIMITER])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local per = tonumber(ARGV[3])
local at = now - now % per
if stored then
  local last = tonumber(stored) or tonumber(string.match(stored, '^%d+')) or at
  local most = now + @TAKE_WAIT_MOST + per
  if not (last <= most) then
    -- Nobody can have reserved that: the clock was set back, or it is no number.
    most = most - most % per
    redis.call('SET', KEYS[@LIMITER], most, 'PX', math.ceil((most + per - now) / 1000) + @LIMITER_REST)
    return { @REFUSED, most - now }
  end
  at = math.max(at, last)
end
local used = at % per
if used + ARGV[1] > tonumber(ARGV[2]) then
  at = at - used + per
  used = 0
end
local begins = at - used - now
local lives = math.ceil((begins + per) / 1000) + @LIMITER_REST
at = at + ARGV[1]
if begins <= 0 then
  redis.call('SET', KEYS[@LIMITER], at, 'PX', lives)
  return @TAKEN
end
if not ARGV[4] or begins > tonumber(ARGV[4]) then
  return { @REFUSED, begins }
end
redis.call('SET', KEYS[@LIMITER], string.format('%.0f %s', at, ARGV[5]), 'PX', lives)
return { @RESERVED, begins }
