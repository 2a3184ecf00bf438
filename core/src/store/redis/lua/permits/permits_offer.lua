-- Shared by the scripts of read-write locks and semaphores: who holds permits, and who is offered some.
-- A holder is in KEYS[@HOLDERS] with the time its lease ends, and in KEYS[@RECORDS] as "weight fence since owner".

-- include line.lua

-- What an entry begins with.
local ENTRY = '^(%d+) (%d) (%d+) '

-- What is held now, the lease of `gone` left out, which has not ended. The leases are the count: there is no other that
-- could be wrong. `meta` is { fence, heaviest, limit, ... }: where nobody ever took more than one since the lock was
-- idle, permits are as many as leases; otherwise a bounded number is looked at. What cannot be seen counts as heaviest.
-- Returns the permits, the most that one of them may have, and a bounded number of tokens whose leases have ended.
local function held_permits(now, meta, gone)
  local after_now = string.format('(%.0f', now)
  local count = redis.call('ZCOUNT', KEYS[@HOLDERS], after_now, '+inf')
  local ended = {}
  if redis.call('ZCARD', KEYS[@HOLDERS]) > count then
    ended = redis.call('ZRANGE', KEYS[@HOLDERS], '-inf', now, 'BYSCORE', 'LIMIT', 0, @ENDED_SCAN)
  end
  -- Of a lock whose record was lost, all are looked at.
  local heaviest = tonumber(meta[2] or meta[3] or 2)
  local left = count - (gone and 1 or 0)
  if left == 0 or heaviest == 1 then
    return left, math.min(left, 1), ended
  end
  local tokens = redis.call('ZRANGE', KEYS[@HOLDERS], after_now, '+inf', 'BYSCORE', 'LIMIT', 0, @HELD_SCAN)
  local held, most = (count - #tokens) * heaviest, 1
  for i, record in ipairs(redis.call('HMGET', KEYS[@RECORDS], unpack(tokens))) do
    if tokens[i] ~= gone then
      local weight = tonumber(string.match(record or '', '^%d+') or heaviest)
      held, most = held + weight, math.max(most, weight)
    end
  end
  return held, count > #tokens and heaviest or most, ended
end

-- Gives the chosen ones their permits for the grant window. The hints are sent by wake_all(), last of all.
-- Returns the last fence given, what is held with theirs, and the most that one has.
local function offer_all(chosen, now, fence, used, most)
  for _, next in ipairs(chosen) do
    fence = fence + 1
    redis.call('HSET', KEYS[@RECORDS], next[1], string.format('%.0f %.0f 0 ', next[3], fence))
    redis.call('ZADD', KEYS[@HOLDERS], now + @GRANT_WINDOW, next[1])
    mark_offered(next, now)
    used, most = used + next[3], math.max(most, next[3])
  end
  return fence, used, most
end

local function drop_holders(tokens)
  if #tokens > 0 then
    redis.call('ZREM', KEYS[@HOLDERS], unpack(tokens))
    redis.call('HDEL', KEYS[@RECORDS], unpack(tokens))
  end
end

-- Both keys of the holders live as long as the lease that ends last. `known` says that there were some before.
local function keep_holders(ttl, known)
  if not known or redis.call('PTTL', KEYS[@HOLDERS]) < ttl then
    redis.call('PEXPIRE', KEYS[@HOLDERS], ttl)
  end
  if not known or redis.call('PTTL', KEYS[@RECORDS]) < ttl then
    redis.call('PEXPIRE', KEYS[@RECORDS], ttl)
  end
end

-- Who is to be offered what is free when so many are used, before anything is written; `me` leaves the line.
local function successors(now, meta, used, me)
  local limit = tonumber(meta[3]) or used
  return look_along(now, limit - used, me, 0, ENTRY)
end

-- After permits were given back, which left so many used: makes the offers.
local function hand_on(now_us, meta, used, most, chosen, dead)
  local fence = tonumber(meta[1])
  if #chosen > 0 then
    local now = math.floor(now_us / 1000)
    fence, used, most = offer_all(chosen, now, math.max(fence or 0, now_us - 1), used, most)
    keep_holders(@GRANT_WINDOW, true)
  end
  if fence then
    local newest = string.format('%.0f', fence)
    redis.call('HSET', KEYS[@META], 'heaviest', most, 'used', used, 'fence', newest)
  end
  drop(dead)
end
