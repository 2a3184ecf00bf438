-- Write a computed value, give its lock back, and wake those who wait for the value.
-- keys:    LOCK, META, LINE, WAITERS, ENDED, VALUE
-- args:    1 token, 2 the lease's fence, 3 value, 4 ms for which it is fresh, 5 ms for which it may be stale,
--          6 ms that the computation took, 7 acquire was sent again 0 or 1
-- returns: {@STORED} | {@GONE, fence, born, broken, foreign 0 or 1}
local holder = redis.call('GET', KEYS[@LOCK])

-- include absence.lua

-- The lease may have ended, and the lock been offered to its token anew, for a late copy of its acquire.
if holder ~= ARGV[1] or redis.call('HGET', KEYS[@META], 'fence') ~= ARGV[2] then
  return absence(holder)
end

-- include line.lua
-- include cached_waiters.lua
-- include end_token.lua

local time = redis.call('TIME')
local fresh_until = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4]
local waiting, entries = first_waiters()
-- The first write adds: when memory is full, all of it fails.
-- `stale` says of which value it is: an older library writes the others only.
local end_text = string.format('%.0f', fresh_until)
redis.call('HSET', KEYS[@VALUE], 'value', ARGV[3], 'fresh_until', end_text, 'took', ARGV[6], 'stale',
  string.format('%s %s', end_text, ARGV[5]))
redis.call('PEXPIRE', KEYS[@VALUE], ARGV[4] + ARGV[5])
redis.call('DEL', KEYS[@LOCK])
drop(waiting)
if ARGV[7] == '1' then
  end_token(time)
end
-- No lease needs the record any more, only copies of this request.
redis.call('PEXPIRE', KEYS[@META], @ENDED_TTL)
wake_all(entries)
return { @STORED }
