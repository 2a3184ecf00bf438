-- Shared: take the token out of the line.
local function leave_line()
  -- Read only so that an entry of another type fails before anything is written.
  redis.call('HGET', KEYS[4], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('HDEL', KEYS[4], ARGV[1])
end
