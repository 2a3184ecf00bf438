-- Take so many of a limiter that spaces them evenly: now, or by a reservation that begins in time.
-- keys:    LIMITER; ENDED of whoever waits
-- args:    1 us for which it is used up by this, 2 us by which this may begin before that,
--          3 us to wait at most or none, 4 token of whoever waits or none
-- returns: {@RESERVED, us until it begins} | {@REFUSED, us until a try succeeds} | @TAKEN

-- The key is a STRING: until when it is used up, in us; if the last take is a reservation, also its token.
if ARGV[3] and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  -- It was given up, and nobody waits for the answer.
  return { @REFUSED, 0 }
end
local stored = redis.call('GET', KEYS[@LIMITER])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local used = now
if stored then
  local ends = tonumber(stored) or tonumber(string.match(stored, '^%d+')) or now
  local most = now + @TAKE_WAIT_MOST + ARGV[1] + ARGV[2]
  if not (ends <= most) then
    -- Nobody can have reserved that: the clock was set back, or it is no number.
    redis.call('SET', KEYS[@LIMITER], most, 'PX', math.ceil((most - now) / 1000) + @LIMITER_REST)
    return { @REFUSED, most - ARGV[2] - now }
  end
  if ends > now then
    used = ends
    local begins = used - ARGV[2] - now
    if begins > 0 then
      if not ARGV[3] or begins > tonumber(ARGV[3]) then
        return { @REFUSED, begins }
      end
      used = used + ARGV[1]
      redis.call('SET', KEYS[@LIMITER], string.format('%.0f %s', used, ARGV[4]), 'PX',
        math.ceil((used - now) / 1000) + @LIMITER_REST)
      return { @RESERVED, begins }
    end
  end
end
used = used + ARGV[1]
redis.call('SET', KEYS[@LIMITER], used, 'PX', math.ceil((used - now) / 1000) + @LIMITER_REST)
return @TAKEN
