-- Give a reservation back, if it is the last take.
-- keys:    LIMITER, ENDED
-- args:    1 token, 2 us for which it is used up by it
-- returns: {@GIVEN_BACK} | {@GONE}
local stored = redis.call('GET', KEYS[@LIMITER])
-- include end_take.lua
local ends, token = string.match(stored or '', '^(%d+) (.+)$')
if token ~= ARGV[1] then
  return { @GONE }
end
local time = redis.call('TIME')
local used = ends - ARGV[2]
local left = used - (time[1] * 1000000 + time[2])
if left > 0 then
  -- First what needs no memory.
  redis.call('PEXPIRE', KEYS[@LIMITER], math.ceil(left / 1000) + @LIMITER_REST)
  redis.call('SET', KEYS[@LIMITER], used, 'KEEPTTL')
else
  redis.call('DEL', KEYS[@LIMITER])
end
return { @GIVEN_BACK }
