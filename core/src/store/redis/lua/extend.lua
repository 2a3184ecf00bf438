-- Prolong a lease; never shortens it, unless it is to end exactly then. Or take the lock again: most servers of the
-- quorum have the lease, this one has forgotten it.
-- keys:    LOCK, META; ENDED, to take it again
-- args:    1 token, 2 ttl ms, 3 exact 0 or 1, or none; to take it again: 4 fence, 5 owner
-- returns: {@EXTENDED, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[@LOCK])
local ttl = tonumber(ARGV[2])
if not value and ARGV[4] then
  local meta = redis.call('HMGET', KEYS[@META], 'fence', 'born', 'broken', 'floor')
  if meta[3] ~= ARGV[4] and redis.call('EXISTS', KEYS[@ENDED]) == 0 then
    local fence = tonumber(ARGV[4])
    -- Tries that failed have left larger fences: the next grant goes above them, and this lease keeps its own.
    local floor = math.max(tonumber(meta[1]) or 0, tonumber(meta[4]) or 0)
    local born = math.min(tonumber(meta[2]) or fence, fence)
    redis.call('HDEL', KEYS[@META], 'calm_until')
    redis.call('SET', KEYS[@LOCK], ARGV[1], 'PX', ttl)
    redis.call('HSET', KEYS[@META], 'fence', ARGV[4], 'born', string.format('%.0f', born), 'floor', string.format('%.0f', floor),
      'owner', ARGV[5], 'since', string.format('%.0f', math.floor(fence / 1000000)))
    redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + ttl))
    return { @EXTENDED, ttl }
  end
end
if value ~= ARGV[1] then
  -- include absence.lua
  return absence(value)
end

local left = redis.call('PTTL', KEYS[@LOCK])
if left < ttl or ARGV[3] == '1' then
  redis.call('PEXPIRE', KEYS[@LOCK], ttl)
  left = ttl
end
redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + left))
return { @EXTENDED, left }
