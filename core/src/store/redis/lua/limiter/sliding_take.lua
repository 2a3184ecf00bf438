-- Take so many of a limiter by any window of time: now, or by a reservation that begins in time.
-- keys:    LIMITER; ENDED of whoever waits
-- args:    1 how many, 2 how many a window has, 3 us of a window, 4 us to wait at most or none,
--          5 token of whoever waits or none
-- returns: {@RESERVED, us until it begins} | {@REFUSED, us until a try succeeds} | @TAKEN

-- The key is a ZSET: when some were taken in us, of a reservation also its token -> how many were until then, counted since
-- the key is there. What is taken at one time is one entry.
if ARGV[4] and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  -- It was given up, and nobody waits for the answer.
  return { @REFUSED, 0 }
end
local last = redis.call('ZRANGE', KEYS[@LIMITER], -1, -1, 'WITHSCORES')
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local begins, total, at = 0, 0, now
if last[1] then
  at = tonumber(string.match(last[1], '^%d+'))
  total = tonumber(last[2])
  if not at or at > now + @TAKE_WAIT_MOST then
    -- Nobody can have reserved that: the clock was set back, or it is no number. All are taken as late as can be.
    at = now + @TAKE_WAIT_MOST
    redis.call('ZADD', KEYS[@LIMITER], total + ARGV[2], string.format('%.0f', at))
    redis.call('PEXPIRE', KEYS[@LIMITER], math.ceil((@TAKE_WAIT_MOST + ARGV[3]) / 1000) + @LIMITER_REST)
    return { @REFUSED, at + ARGV[3] - now }
  end
  at = math.max(at, now)
  -- With this one the window has one more than it may from the one that is so many before the last.
  local place = total + ARGV[1] - ARGV[2]
  if place > 0 then
    local first = redis.call('ZRANGE', KEYS[@LIMITER], place, '+inf', 'BYSCORE', 'LIMIT', 0, 1)
    at = math.max(at, (tonumber(string.match(first[1], '^%d+')) or now) + ARGV[3])
  end
  begins = at - now
end
if begins > 0 and (not ARGV[4] or begins > tonumber(ARGV[4])) then
  return { @REFUSED, begins }
end
-- Without this one, which may be given back, windows go back to here.
local over = total - ARGV[2]
total = total + ARGV[1]
local entry = string.format('%.0f', at)
if begins > 0 then
  entry = string.format('%s %s', entry, ARGV[5])
end
redis.call('ZADD', KEYS[@LIMITER], total, entry)
if over > 0 then
  -- Each entry counts one or more, so that these are not many.
  local oldest = redis.call('ZRANGE', KEYS[@LIMITER], 0, 0, 'WITHSCORES')
  redis.call('ZREMRANGEBYSCORE', KEYS[@LIMITER], '-inf', math.min(over, oldest[2] + @SLIDING_TRIM - 1))
end
redis.call('PEXPIRE', KEYS[@LIMITER], math.ceil((begins + ARGV[3]) / 1000) + @LIMITER_REST)
if begins > 0 then
  return { @RESERVED, begins }
end
return @TAKEN
