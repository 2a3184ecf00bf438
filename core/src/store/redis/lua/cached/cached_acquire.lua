-- Answer with a cached value; or take the lock of its computation, confirm an offer, or wait for it.
-- keys:    LOCK, META, LINE, WAITERS, ENDED, VALUE
-- args:    1 token, 2 ttl ms, 3 least fence, 4 owner, 5 how many computation times before its end the value
--          counts as stale, 6 "client seq" to register or ""
-- returns: {@CACHED, value} | {@GRANTED, fence, ttl ms} | {@WAITING or @BUSY, remaining ms, false, how many are before it} | {@ENDED}
local token, registers = ARGV[1], ARGV[6] ~= ''
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local cached = redis.call('HMGET', KEYS[@VALUE], 'fresh_until', 'took', 'value')

-- include hand_off.lua
-- include cached_waiters.lua

if cached[3] then
  local is_stale = now + tonumber(cached[2]) * tonumber(ARGV[5]) >= tonumber(cached[1])
  local holder = is_stale and redis.call('GET', KEYS[@LOCK])
  local waiting, entries = first_waiters()
  -- Whoever finds it stale computes it anew, unless another does already, or those who wait come first.
  if not is_stale or holder ~= token and (holder or #waiting > 0) then
    if #waiting > 0 then
      drop(waiting)
      redis.call('ZREM', KEYS[@LINE], token)
      redis.call('HDEL', KEYS[@WAITERS], token)
      wake_all(entries)
    end
    return { @CACHED, cached[3] }
  end
end

local meta = redis.call('HMGET', KEYS[@META], 'fence', 'ended_until')
if meta[2] and tonumber(meta[2]) > now and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  return { @ENDED }
end

local ttl, last_fence = tonumber(ARGV[2]), tonumber(meta[1])
local next_fence = math.max((last_fence or 0) + 1, now_us, ARGV[3])
local value = redis.call('GET', KEYS[@LOCK])
local place = redis.call('ZSCORE', KEYS[@LINE], token)
-- Read only so that one of another type fails before anything is written.
redis.call('HGET', KEYS[@WAITERS], token)

-- The record lives as long as the lease can, and a copy of its requests. There may be millions of names.
local function grant(fence, left)
  redis.call('SET', KEYS[@LOCK], token, 'PX', left)
  redis.call('HSET', KEYS[@META], 'fence', string.format('%.0f', fence), 'owner', ARGV[4], 'since', time[1])
  if not last_fence then
    redis.call('HSET', KEYS[@META], 'born', string.format('%.0f', math.min(fence, now_us)))
  end
  redis.call('PEXPIRE', KEYS[@META], math.max(@ENDED_TTL, 2 * left))
  if place then
    redis.call('ZREM', KEYS[@LINE], token)
    redis.call('HDEL', KEYS[@WAITERS], token)
  end
  return { @GRANTED, fence, left }
end

if value == token then
  -- Ours already: by an offer, or by an earlier copy of this request.
  local left = place and ttl or math.max(ttl, redis.call('PTTL', KEYS[@LOCK]))
  return grant(math.max(last_fence or now_us, ARGV[3]), left)
end

local remaining, rank = 0, 0
if value then
  remaining = redis.call('PTTL', KEYS[@LOCK])
end
local chosen, dead, drowsy, mine = {}, {}, {}, false
if registers or not value then
  chosen, dead, drowsy, mine = look_along(now, value and 0 or 1, token, 1, ENTRY)
end
if mine then
  local granted = grant(next_fence, ttl)
  drop(dead)
  wake_all(drowsy)
  return granted
end
if chosen[1] then
  offer(chosen[1], now, next_fence, meta[1])
  remaining = @GRANT_WINDOW
end
drop(dead)
if registers then
  rank = line_up(now_us, token, {}, string.format('%s %s', ARGV[4], ARGV[6]))
end
wake_all(hints_for(chosen, drowsy))
-- Who has made an offer comes back soon, to see whether it was answered. The others all get the value at once, so that
-- nobody asks very seldom.
return { registers and @WAITING or @BUSY, remaining, false, value and math.min(rank, @CACHED_RANK) or 0 }
