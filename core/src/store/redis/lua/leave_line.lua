-- Shared: take the token out of the line.
local function leave_line()
  -- Read only so that an entry of another type fails before anything is written.
  redis.call('HGET', KEYS[@WAITERS], ARGV[1])
  redis.call('ZREM', KEYS[@LINE], ARGV[1])
  redis.call('HDEL', KEYS[@WAITERS], ARGV[1])
end
