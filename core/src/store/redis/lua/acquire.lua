-- Take the lock, confirm an offer, or wait for it.
-- keys:    LOCK, META, LINE, WAITERS, ENDED
-- args:    1 token, 2 ttl ms, 3 least fence, 4 owner; or also 5 "client seq" to register or ""; or also
--          6 patience ms or "", 7 digest to adopt or ""
-- returns: {@GRANTED, fence, ttl ms}, or the fence alone for the whole ttl |
--          {@WAITING or @BUSY, ms to its end or to the next poll or -1, digest or false, how many before it} | {@ENDED}
local token, ttl_text, least, owner = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local time = redis.call('TIME')
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'calm_until')

-- The common case, in four calls. Texts of digits compare as their numbers do. A lease of six digits, 100 s, renews the record's life.
-- To join two texts is cheaper than a format, which only a moment with fewer digits needs.
local now_text = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local calm = meta[1] and meta[2] and meta[2] > now_text and #ttl_text < 6 and #least <= #now_text
local fence_text = #least == #now_text and least > now_text and least or now_text
if calm and meta[1] < fence_text and redis.call('SET', KEYS[@LOCK], token, 'NX', 'PX', ttl_text) then
  redis.call('HSET', KEYS[@META], 'fence', fence_text, 'owner', owner, 'since', time[1])
  return tonumber(fence_text)
end

local now_us = tonumber(now_text)
local now = math.floor(now_us / 1000)
local flux = redis.call('HMGET', KEYS[@META], 'wait_until', 'ended_until', 'share_until', 'hand_offs', 'floor',
  'foreign_since', 'foreign_seen')
local may_have_ended = flux[2] and tonumber(flux[2]) > now
local share_left = (flux[3] and tonumber(flux[3]) or 0) - now

if may_have_ended and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  return { @ENDED }
end

local registers = (ARGV[5] or '') ~= ''
local wait_until = tonumber(flux[1]) or 0
local crowded = wait_until > now or redis.call('EXISTS', KEYS[@LINE]) == 1

local last_fence = tonumber(meta[1])
local next_fence = math.max((last_fence or 0) + 1, (tonumber(flux[5]) or 0) + 1, now_us, least)
local ttl = tonumber(ttl_text)
-- Writes what a grant leaves in meta, which must outlive the lease. Its ttl is renewed unless the lock is calm.
local function record(fence)
  redis.call('HSET', KEYS[@META], 'fence', string.format('%.0f', fence), 'owner', owner, 'since', time[1])
  if not meta[1] then
    redis.call('HSET', KEYS[@META], 'born', string.format('%.0f', math.min(fence, now_us)))
  end
  if not calm then
    redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + ttl))
  end
end

-- include foreign.lua

-- Granted without an offer before: that ends a row of hand-offs.
local function take(fence)
  record(fence)
  begin_row(now, flux[4], flux[6], flux[7])
  return { @GRANTED, fence, ttl }
end

if not crowded and share_left <= 0 and redis.call('SET', KEYS[@LOCK], token, 'NX', 'PX', ttl) then
  -- Nobody waits: so it stays until somebody does, or a token ends.
  if not calm and not may_have_ended then
    redis.call('HSET', KEYS[@META], 'calm_until', string.format('%.0f', now + @META_REFRESH))
  end
  return take(next_fence)
end

local value = redis.call('GET', KEYS[@LOCK])
if value == token then
  local fence = math.max(last_fence or now_us, least)
  -- Both are read first, so that one of another type fails before anything is written.
  local place = redis.call('ZSCORE', KEYS[@LINE], token)
  redis.call('HGET', KEYS[@WAITERS], token)
  record(fence)
  if place then
    redis.call('ZREM', KEYS[@LINE], token)
    redis.call('HDEL', KEYS[@WAITERS], token)
    redis.call('PEXPIRE', KEYS[@LOCK], ttl)
    return { @GRANTED, fence, ttl }
  end
  local left = redis.call('PTTL', KEYS[@LOCK])
  if left < ttl then
    redis.call('PEXPIRE', KEYS[@LOCK], ttl)
    left = ttl
  end
  return { @GRANTED, fence, left }
end

-- include hand_off.lua

local remaining, digest = 0, false
if value then
  remaining = redis.call('PTTL', KEYS[@LOCK])
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
local chosen, dead, drowsy, mine, more = {}, {}, {}, false, false
if free or registers and crowded then
  chosen, dead, drowsy, mine, more = look_along(now, free and 1 or 0, token, 1, ENTRY)
end
if mine then
  redis.call('SET', KEYS[@LOCK], token, 'PX', ttl)
  if redis.call('ZREM', KEYS[@LINE], token) == 1 then
    redis.call('HDEL', KEYS[@WAITERS], token)
  end
  drop(dead)
  local granted = take(next_fence)
  wake_all(drowsy)
  return granted
end
if chosen[1] then
  offer(chosen[1], now, next_fence, meta[1])
  begin_row(now, flux[4], flux[6], flux[7])
  drop(dead)
  dead, remaining = {}, @GRANT_WINDOW
elseif more then
  -- The caller asks again at once, and goes on from there.
  redis.call('HSET', KEYS[@META], 'wait_until', string.format('%.0f', math.max(wait_until, now + @LIVE)))
  drop(dead)
  dead = {}
end

registers = registers and ((ARGV[6] or '') == '' or remaining >= 0 and remaining <= tonumber(ARGV[6]))
local rank, live_until = 0, 0
if registers then
  rank, live_until = line_up(now_us, token, dead, string.format('%s %s', owner, ARGV[5]))
  live_until = string.format('%.0f', math.max(wait_until, live_until))
  redis.call('HSET', KEYS[@META], 'calm_until', '0', 'wait_until', live_until)
  if not meta[1] then
    redis.call('PEXPIRE', KEYS[@META], @META_TTL)
  end
  remaining = look_out(now_us, value and not ours(value), flux[6], flux[7], share_left, rank == 0, remaining)
end
wake_all(hints_for(chosen, drowsy))
-- Who has made an offer comes back soon, to see whether it was answered.
return { registers and @WAITING or @BUSY, remaining, digest, free and 0 or rank }
