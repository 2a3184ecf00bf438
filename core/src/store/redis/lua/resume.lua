-- Swap the token of a lease that was handed over. A handle works once: the old token is gone then.
-- keys:    LOCK, META, ENDED: of the new token, or of the old one if it is an undo
-- args:    1 old token, 2 new token, 3 owner, 4 undo 0 or 1: takes an earlier swap back, also one that is yet to come
-- returns: {@RESUMED, fence, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[@LOCK])
local fence = redis.call('HGET', KEYS[@META], 'fence')
local undo = ARGV[4] == '1'
-- A lease whose record the server has forgotten cannot go on: nobody knows its fence.
if not fence or (value ~= ARGV[1] and value ~= ARGV[2]) or not undo and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  -- include absence.lua
  return absence(value)
end

local left = redis.call('PTTL', KEYS[@LOCK])
if value == ARGV[1] then
  redis.call('SET', KEYS[@LOCK], ARGV[2], 'KEEPTTL')
  redis.call('HSET', KEYS[@META], 'owner', ARGV[3])
  redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + left))
end
if undo then
  redis.call('SET', KEYS[@ENDED], '1', 'PX', @ENDED_TTL)
end
return { @RESUMED, tonumber(fence), left }
