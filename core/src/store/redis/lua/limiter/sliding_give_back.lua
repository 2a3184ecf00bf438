-- Give a reservation back, if it is the last take.
-- keys:    LIMITER, ENDED
-- args:    1 token
-- returns: {@GIVEN_BACK} | {@GONE}
local last = redis.call('ZRANGE', KEYS[@LIMITER], -1, -1)
-- include end_take.lua
if not last[1] or string.match(last[1], '^%d+ (.+)$') ~= ARGV[1] then
  return { @GONE }
end
redis.call('ZREM', KEYS[@LIMITER], last[1])
-- The one before can be given back no more: what windows would go back to then may be forgotten.
last = redis.call('ZRANGE', KEYS[@LIMITER], -1, -1, 'WITHSCORES')
local at = string.match(last[1] or '', '^(%d+) ')
if at then
  -- In this order: a key without an entry would be gone, and its end with it.
  redis.call('ZADD', KEYS[@LIMITER], last[2], at)
  redis.call('ZREM', KEYS[@LIMITER], last[1])
end
return { @GIVEN_BACK }
