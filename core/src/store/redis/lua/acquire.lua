-- Take the lock, confirm an offer, or wait for it.
-- keys:    1 lock, 2 meta, 3 line, 4 waiters, 5 ended
-- args:    1 token, 2 ttl ms, 3 least fence, 4 owner, 5 "client seq" to register or "",
--          6 patience ms or "", 7 digest to adopt or ""
-- returns: {@GRANTED, fence, ttl ms} | {@WAITING or @BUSY, remaining ms or -1, digest or false} | {@ENDED}
local token, ttl = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[2], 'fence', 'wait_until', 'ended_until', 'share_until', 'fresh_until',
  'hand_offs')
local share_left = (tonumber(meta[4]) or 0) - now

local function next_fence()
  return math.max((tonumber(meta[1]) or 0) + 1, now_us, tonumber(ARGV[3]))
end

-- Writes what a grant leaves in meta; its ttl is renewed once an hour, which saves a call.
local function record(fence)
  local fields = { 'fence', string.format('%.0f', fence), 'owner', ARGV[4], 'since', string.format('%.0f', now) }
  if not meta[1] then
    fields[#fields + 1] = 'born'
    fields[#fields + 1] = string.format('%.0f', math.min(fence, now_us))
  end
  if meta[6] and meta[6] ~= '0' then
    fields[#fields + 1] = 'hand_offs'
    fields[#fields + 1] = '0'
  end
  local stale = (tonumber(meta[5]) or 0) <= now
  if stale then
    fields[#fields + 1] = 'fresh_until'
    fields[#fields + 1] = string.format('%.0f', now + @META_REFRESH)
  end
  redis.call('HSET', KEYS[2], unpack(fields))
  if stale then
    redis.call('PEXPIRE', KEYS[2], @META_TTL)
  end
end

if (tonumber(meta[3]) or 0) > now and redis.call('EXISTS', KEYS[5]) == 1 then
  return { @ENDED }
end

-- Nobody can be waiting and nobody holds it: the common case, in four calls.
local crowded = (tonumber(meta[2]) or 0) > now
if not crowded and share_left <= 0 then
  if redis.call('SET', KEYS[1], token, 'NX', 'PX', ttl) then
    local fence = next_fence()
    record(fence)
    return { @GRANTED, fence, ttl }
  end
end

local value = redis.call('GET', KEYS[1])
if value == token then
  local fence = math.max(tonumber(meta[1]) or now_us, tonumber(ARGV[3]))
  record(fence)
  if redis.call('ZREM', KEYS[3], token) == 1 then
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
    local fence = next_fence()
    record(fence)
    redis.call('ZREM', KEYS[3], token)
    redis.call('HDEL', KEYS[4], token)
    drop(dead)
    return { @GRANTED, fence, ttl }
  end
  offer(head, entry, next_fence())
  drop(dead)
  remaining = @GRANT_WINDOW
end

local registers = ARGV[5] ~= ''
if registers and ARGV[6] ~= '' then
  registers = remaining >= 0 and remaining <= tonumber(ARGV[6])
end
if registers then
  if not redis.call('ZSCORE', KEYS[3], token) then
    local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    local arrival = math.max((tonumber(last[2]) or 0) + 1, now_us)
    redis.call('ZADD', KEYS[3], string.format('%.0f', arrival), token)
  end
  redis.call('HSET', KEYS[4], token, string.format('%.0f 0 %s', now, ARGV[5]))
  redis.call('HSET', KEYS[2], 'wait_until', string.format('%.0f', now + @LIVE))
  redis.call('PEXPIRE', KEYS[3], @LINE_TTL)
  redis.call('PEXPIRE', KEYS[4], @LINE_TTL)
end
if free then
  wake(entry)
end
return { registers and @WAITING or @BUSY, remaining, digest }
