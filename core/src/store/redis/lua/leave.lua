-- End a wait: remove the entry, and the grant if one was made meanwhile.
-- keys:    LOCK, META, LINE, WAITERS, ENDED
-- args:    1 token, 2 foreign share 0 or 1
-- returns: {@LEFT}
local value = redis.call('GET', KEYS[@LOCK])

-- include hand_off.lua
-- include end_token.lua
-- include leave_line.lua

-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[@META], 'fence')
leave_line()
local time = redis.call('TIME')
local hints = {}
if value == ARGV[1] then
  hints = hand_off(time, ARGV[2] == '1')
else
  -- Others are nearer to the head now.
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local _, dead, drowsy = look_along(now, 0, nil, 0, ENTRY)
  drop(dead)
  hints = drowsy
end
end_token(time)
wake_all(hints)
return { @LEFT }
