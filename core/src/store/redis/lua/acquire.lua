-- Take the lock, confirm an offer, or wait for it.
-- keys:    1 lock, 2 meta, 3 line, 4 waiters, 5 ended
-- args:    1 token, 2 ttl ms, 3 least fence, 4 owner; all three or none of:
--          5 "client seq" to register or "", 6 patience ms or "", 7 digest to adopt or ""
-- returns: {@GRANTED, fence, ttl ms}, or the fence alone for the whole ttl |
--          {@WAITING or @BUSY, remaining ms or -1, digest or false} | {@ENDED}
local token = ARGV[1]
local time = redis.call('TIME')
local meta = redis.call('HMGET', KEYS[2], 'fence', 'calm_until')

-- The common case, in four calls. Texts of digits compare as their numbers do. Nine digits of ttl are over a day.
local now_text = string.format('%s%06d', time[1], time[2])
local calm = meta[1] and meta[2] and meta[2] > now_text and not ARGV[5] and #ARGV[2] < 9 and #ARGV[3] <= #now_text
local fence_text = #ARGV[3] == #now_text and ARGV[3] > now_text and ARGV[3] or now_text
if calm and meta[1] < fence_text and redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[2]) then
  redis.call('HSET', KEYS[2], 'fence', fence_text, 'owner', ARGV[4], 'since', time[1])
  return tonumber(fence_text)
end

local now_us = tonumber(now_text)
local now = math.floor(now_us / 1000)
local flux = redis.call('HMGET', KEYS[2], 'wait_until', 'ended_until', 'share_until', 'hand_offs')
local crowded = flux[1] and tonumber(flux[1]) > now
local may_have_ended = flux[2] and tonumber(flux[2]) > now
local share_left = (flux[3] and tonumber(flux[3]) or 0) - now

if may_have_ended and redis.call('EXISTS', KEYS[5]) == 1 then
  return { @ENDED }
end

-- A waiter that was silent for so long that it counts as dead still has its entry, which must go.
local registers = (ARGV[5] or '') ~= ''
if registers and not crowded and redis.call('ZSCORE', KEYS[3], token) then
  crowded = true
end

local last_fence = tonumber(meta[1])
local next_fence = math.max((last_fence or 0) + 1, now_us, ARGV[3])
local ttl = tonumber(ARGV[2])
-- Writes what a grant leaves in meta, which must outlive the lease. Its ttl is renewed unless the lock is calm.
local function record(fence)
  redis.call('HSET', KEYS[2], 'fence', string.format('%.0f', fence), 'owner', ARGV[4], 'since', time[1])
  if not meta[1] then
    redis.call('HSET', KEYS[2], 'born', string.format('%.0f', math.min(fence, now_us)))
  end
  if not calm then
    redis.call('PEXPIRE', KEYS[2], math.max(@META_TTL, 2 * ttl))
  end
end

-- Granted without an offer before: that ends a row of hand-offs.
local function take(fence)
  record(fence)
  if flux[4] then
    redis.call('HDEL', KEYS[2], 'hand_offs')
  end
  return { @GRANTED, fence, ttl }
end

if not crowded and share_left <= 0 and redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[2]) then
  -- Nobody waits: so it stays until somebody does, or a token ends.
  if not calm and not may_have_ended then
    redis.call('HSET', KEYS[2], 'calm_until', string.format('%.0f', now + @META_REFRESH))
  end
  return take(next_fence)
end

local value = redis.call('GET', KEYS[1])
if value == token then
  local fence = math.max(last_fence or now_us, ARGV[3])
  -- Both are read first, so that one of another type fails before anything is written.
  local place = redis.call('ZSCORE', KEYS[3], token)
  redis.call('HGET', KEYS[4], token)
  record(fence)
  if place then
    redis.call('ZREM', KEYS[3], token)
    redis.call('HDEL', KEYS[4], token)
    redis.call('PEXPIRE', KEYS[1], ttl)
    return { @GRANTED, fence, ttl }
  end
  local left = redis.call('PTTL', KEYS[1])
  if left < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
    left = ttl
  end
  return { @GRANTED, fence, left }
end

-- include hand_off.lua

local remaining, digest = 0, false
if value then
  remaining = redis.call('PTTL', KEYS[1])
  if (remaining < 0 or remaining > @YEAR) and not ours(value) then
    digest = redis.sha1hex(value)
    if digest == ARGV[7] then
      value = false
    end
  end
elseif share_left > 0 then
  remaining = share_left
end

local free = not value and share_left <= 0
local head, entry, dead
if free then
  head, entry, dead = next_waiter(now, token)
  if not head or head == token then
    redis.call('SET', KEYS[1], token, 'PX', ttl)
    if redis.call('ZREM', KEYS[3], token) == 1 then
      redis.call('HDEL', KEYS[4], token)
    end
    drop(dead)
    return take(next_fence)
  end
  offer(head, entry, next_fence, meta[1])
  drop(dead)
  remaining = @GRANT_WINDOW
end

if registers and ARGV[6] ~= '' then
  registers = remaining >= 0 and remaining <= tonumber(ARGV[6])
end
if registers then
  local place = redis.call('ZSCORE', KEYS[3], token)
  redis.call('HSET', KEYS[4], token, string.format('%.0f 0 %s %s', now, ARGV[4], ARGV[5]))
  if not place then
    local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    local arrival = math.max((tonumber(last[2]) or 0) + 1, now_us)
    redis.call('ZADD', KEYS[3], string.format('%.0f', arrival), token)
  end
  redis.call('HSET', KEYS[2], 'calm_until', '0', 'wait_until', string.format('%.0f', now + @LIVE))
  if not meta[1] then
    redis.call('PEXPIRE', KEYS[2], @META_TTL)
  end
  redis.call('PEXPIRE', KEYS[3], @LINE_TTL)
  redis.call('PEXPIRE', KEYS[4], @LINE_TTL)
end
if free then
  wake(entry)
end
return { registers and @WAITING or @BUSY, remaining, digest }
