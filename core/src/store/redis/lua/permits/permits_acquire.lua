-- Take permits of a read-write lock or a semaphore, confirm an offer, or wait for them.
-- keys:    HOLDERS, META, LINE, WAITERS, RECORDS, ENDED
-- args:    1 token, 2 ttl ms, 3 least fence, 4 owner, 5 weight, 6 limit, 7 "client seq" to register or "",
--          8 patience ms or ""
-- returns: {@GRANTED, fence, ttl ms} | {@WAITING or @BUSY, remaining ms, false, how many are before it} | {@ENDED} |
--          {@OTHER_LIMIT, limit}
local token, ttl, weight, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'heaviest', 'limit', 'kept_until', 'ended_until')
if meta[5] and tonumber(meta[5]) > now and redis.call('EXISTS', KEYS[@ENDED]) == 1 then
  return { @ENDED }
end

-- include permits_offer.lua

local last_fence = tonumber(meta[1])
local used, most, ended = held_permits(now, meta, nil)
local known = used > 0 or #ended > 0

local function without(tokens, one)
  local rest = {}
  for _, other in ipairs(tokens) do
    if other ~= one then
      rest[#rest + 1] = other
    end
  end
  return rest
end

-- Writes the lease of this token. The holders come last: their type is known.
local function hold(fence, held_weight, expiry)
  redis.call('HSET', KEYS[@RECORDS], token, string.format('%.0f %.0f %s %s', held_weight, fence, time[1], ARGV[4]))
  redis.call('ZADD', KEYS[@HOLDERS], expiry, token)
end

-- Offers to those who are next, tidies up, and writes what all this leaves in meta. `fence` is the last one
-- given before; zero if none was.
local function settle(fence, chosen, dead)
  local newest
  newest, used, most = offer_all(chosen, now, fence, used, most)
  for _, next in ipairs(chosen) do
    ended = without(ended, next[1])
  end
  local told = string.format('%.0f', newest)
  redis.call('HSET', KEYS[@META], 'fence', told, 'heaviest', most, 'used', used, 'limit', limit)
  if not last_fence then
    redis.call('HSET', KEYS[@META], 'born', string.format('%.0f', math.min(newest, now_us)))
  end
  -- Once a minute is enough, unless the lease could outlive it. It is never shortened: other leases may be longer.
  if not meta[4] or tonumber(meta[4]) < now or ttl >= @CALM_LEASE then
    redis.call('HSET', KEYS[@META], 'kept_until', string.format('%.0f', now + @META_REFRESH))
    redis.call('PEXPIRE', KEYS[@META], math.max(@META_TTL, @META_BEYOND + ttl, redis.call('PTTL', KEYS[@META])))
  end
  keep_holders(math.max(ttl, #chosen > 0 and @GRANT_WINDOW or 0), known)
  drop_holders(ended)
  drop(dead)
end

local expiry = known and tonumber(redis.call('ZSCORE', KEYS[@HOLDERS], token) or 0) or 0
if expiry > now then
  -- Ours already: by an offer, or by an earlier copy of this request.
  local held_weight, held_fence = string.match(redis.call('HGET', KEYS[@RECORDS], token) or '', '^(%d+) (%d+) ')
  local new_fence = math.max(last_fence and last_fence + 1 or 0, now_us)
  local fence = math.max(held_fence or new_fence, ARGV[3])
  limit = tonumber(meta[3]) or limit
  local place = redis.call('ZSCORE', KEYS[@LINE], token)
  local chosen, dead, drowsy = {}, {}, {}
  if place then
    expiry = now + ttl
    chosen, dead, drowsy = look_along(now, limit - used, nil, 0, ENTRY)
  end
  expiry = math.max(expiry, now + ttl)
  hold(fence, held_weight or weight, expiry)
  if place then
    redis.call('ZREM', KEYS[@LINE], token)
    redis.call('HDEL', KEYS[@WAITERS], token)
  end
  settle(math.max(fence, last_fence or 0), chosen, dead)
  wake_all(hints_for(chosen, drowsy))
  return { @GRANTED, fence, expiry - now }
end

local registers = ARGV[7] ~= ''
local crowded = redis.call('EXISTS', KEYS[@LINE]) == 1
local stored_limit = tonumber(meta[3])
if stored_limit and stored_limit ~= limit and (used > 0 or crowded) then
  return { @OTHER_LIMIT, stored_limit }
end

local chosen, dead, drowsy, mine = {}, {}, {}, weight <= limit - used
if crowded then
  chosen, dead, drowsy, mine = look_along(now, limit - used, token, weight, ENTRY)
end
local next_fence = math.max((last_fence or 0) + 1, now_us)
if mine then
  local fence = math.max(next_fence, ARGV[3])
  hold(fence, weight, now + ttl)
  -- A lease of this very token may have ended: what it left is written over, and must not be dropped.
  ended = without(ended, token)
  used, most = used + weight, math.max(most, weight)
  if crowded then
    redis.call('ZREM', KEYS[@LINE], token)
    redis.call('HDEL', KEYS[@WAITERS], token)
  end
  settle(fence, chosen, dead)
  wake_all(hints_for(chosen, drowsy))
  return { @GRANTED, fence, ttl }
end

local after_now = string.format('(%.0f', now)
local next_end = redis.call('ZRANGE', KEYS[@HOLDERS], after_now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local remaining = next_end[2] and next_end[2] - now or 0
if #chosen > 0 then
  remaining = math.min(next_end[2] and remaining or @GRANT_WINDOW, @GRANT_WINDOW)
end
if #chosen > 0 or #ended > 0 or #dead > 0 then
  settle(#chosen > 0 and next_fence - 1 or last_fence or next_fence, chosen, dead)
end
if registers and ARGV[8] ~= '' then
  registers = remaining <= tonumber(ARGV[8])
end
local rank = 0
if registers then
  rank = line_up(now_us, token, {}, string.format('%.0f %s %s', weight, ARGV[4], ARGV[7]))
  if not last_fence then
    redis.call('PEXPIRE', KEYS[@META], @META_TTL)
  end
end
wake_all(hints_for(chosen, drowsy))
-- Who has made an offer comes back soon, to see whether it was answered.
return { registers and @WAITING or @BUSY, remaining, false, #chosen > 0 and 0 or rank }
