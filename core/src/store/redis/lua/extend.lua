-- Prolong a lease; never shortens it, unless it is to end exactly then. Or take the lock again: most servers of the
-- quorum have the lease, this one has forgotten it.
-- keys:    1 lock, 2 meta; 3 ended, to take it again
-- args:    1 token, 2 ttl ms, 3 exact 0 or 1, or none; to take it again: 4 fence, 5 owner
-- returns: {@EXTENDED, ttl ms} | {@GONE, fence, born, broken, foreign 0 or 1}
local value = redis.call('GET', KEYS[1])
local ttl = tonumber(ARGV[2])
if not value and ARGV[4] then
  local meta = redis.call('HMGET', KEYS[2], 'fence', 'born', 'broken', 'floor')
  if meta[3] ~= ARGV[4] and redis.call('EXISTS', KEYS[3]) == 0 then
    local fence = tonumber(ARGV[4])
    -- Tries that failed have left larger fences: the next grant goes above them, and this lease keeps its own.
    local floor = math.max(tonumber(meta[1]) or 0, tonumber(meta[4]) or 0)
    local born = math.min(tonumber(meta[2]) or fence, fence)
    redis.call('HDEL', KEYS[2], 'calm_until')
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
    redis.call('HSET', KEYS[2], 'fence', ARGV[4], 'born', string.format('%.0f', born), 'floor', string.format('%.0f', floor),
      'owner', ARGV[5], 'since', string.format('%.0f', math.floor(fence / 1000000)))
    redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, @META_BEYOND + ttl))
    return { @EXTENDED, ttl }
  end
end
if value ~= ARGV[1] then
  -- include absence.lua
  return absence(value)
end

local left = redis.call('PTTL', KEYS[1])
if left < ttl or ARGV[3] == '1' then
  redis.call('PEXPIRE', KEYS[1], ttl)
  left = ttl
end
redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, @META_BEYOND + left))
return { @EXTENDED, left }
