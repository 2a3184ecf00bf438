-- Swap the token of a lease that was handed over. A handle works once: the old token is gone then.
-- keys:    1 lock, 2 meta
-- args:    1 old token, 2 new token, 3 owner
-- returns: {@RESUMED, fence, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[1])
local fence = redis.call('HGET', KEYS[2], 'fence')
-- A lease whose record the server has forgotten cannot go on: nobody knows its fence.
if not fence or (value ~= ARGV[1] and value ~= ARGV[2]) then
  -- include absence.lua
  return absence(value)
end

local left = redis.call('PTTL', KEYS[1])
if value == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  redis.call('HSET', KEYS[2], 'owner', ARGV[3])
  redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, 2 * left))
end
return { @RESUMED, tonumber(fence), left }
