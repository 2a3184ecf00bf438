-- End a wait: remove the entry, and the grant if one was made meanwhile.
-- keys:    1 lock, 2 meta, 3 line, 4 waiters, 5 ended
-- args:    1 token, 2 foreign share 0 or 1
-- returns: {@LEFT}
local value = redis.call('GET', KEYS[1])

-- include hand_off.lua
-- include end_token.lua

-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[2], 'fence')
redis.call('HGET', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
local time = redis.call('TIME')
local entry
if value == ARGV[1] then
  entry = hand_off(time, ARGV[2] == '1')
end
end_token(time)
if entry then
  wake(entry)
end
return { @LEFT }
