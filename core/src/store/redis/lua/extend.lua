-- Prolong a lease; never shortens it.
-- keys:    1 lock, 2 meta
-- args:    1 token, 2 ttl ms
-- returns: {@EXTENDED, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] then
  -- include absence.lua
  return absence(value)
end

local ttl = tonumber(ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
  left = ttl
end
redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, 2 * left))
return { @EXTENDED, left }
