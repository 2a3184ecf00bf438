-- Give the lock back and offer it to the next waiter.
-- keys:    LOCK, META, LINE, WAITERS; ENDED, if the acquire was sent again
-- args:    1 token; all or none of: 2 cooldown ms or 0, 3 acquire was sent again 0 or 1,
--          4 foreign share 0 or 1, 5 the lease's fence or ""
-- returns: {@RELEASED}, or the code alone | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[@LOCK])
if value ~= ARGV[1] then
  -- include absence.lua
  local gone = absence(value)
  if ARGV[3] == '1' then
    -- include leave_line.lua
    -- include end_token.lua
    leave_line()
    end_token(redis.call('TIME'))
  end
  return gone
end

local cooldown, resent, own_fence = ARGV[2] or '0', ARGV[3] == '1', ARGV[5] or ''
if cooldown == '0' and not resent and own_fence == '' and redis.call('EXISTS', KEYS[@LINE]) == 0 then
  redis.call('DEL', KEYS[@LOCK])
  return @RELEASED
end

-- include absence.lua
-- include hand_off.lua
-- include end_token.lua

local time = redis.call('TIME')
-- The lease has ended before, and the lock was offered to its token anew, for a late copy of its acquire.
local gone = own_fence ~= '' and redis.call('HGET', KEYS[@META], 'fence') ~= own_fence and absence(value)
local hints = {}
if gone then
  -- include leave_line.lua
  -- That copy stands in line until it confirms, which nobody does.
  leave_line()
end
if cooldown ~= '0' and not gone then
  -- Read only so that a record of another type fails before anything is written.
  redis.call('HGET', KEYS[@META], 'fence')
  redis.call('PEXPIRE', KEYS[@LOCK], cooldown)
  redis.call('SET', KEYS[@LOCK], '@COOLDOWN_MARKER', 'PX', cooldown)
else
  hints = hand_off(time, ARGV[4] == '1')
end
if resent then
  end_token(time)
end
wake_all(hints)
return gone or { @RELEASED }
