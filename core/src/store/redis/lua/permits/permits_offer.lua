-- Shared by the scripts of read-write locks and semaphores: who holds permits, and who is offered some.
-- A holder is in KEYS[1] with the time its lease ends, and in KEYS[2] as "weight fence since owner".
-- A waiter's entry is "last poll ms, offered 0 or 1, weight, owner, client, seq"; an older library writes no owner.
-- Those who are next are a list of { token, entry, weight }.

-- Tokens whose leases have ended, a bounded number, and the permits they had, or nil if nobody has any; a later
-- call goes on from there.
local function ended_leases(now)
  local tokens = {}
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if not first[1] then
    return tokens, nil
  end
  if tonumber(first[2]) > now then
    return tokens, 0
  end
  tokens = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, @ENDED_SCAN)
  local weight = 0
  for _, record in ipairs(redis.call('HMGET', KEYS[2], unpack(tokens))) do
    weight = weight + (tonumber(string.match(record or '', '^%d+')) or 0)
  end
  return tokens, weight
end

-- The waiters at the head of the line for whom there is room, a bounded number: a heavy one that does not fit holds
-- up those behind it. `me` is the caller, who wants `weight`, in the line or else behind all of it.
-- Returns the others that are next, the dead ones passed on the way, and whether it is the caller's turn.
local function next_waiters(now, room, me, weight)
  local chosen, dead, mine = {}, {}, false
  for first = 0, 1 do
    local tokens = redis.call('ZRANGE', KEYS[4], first, first * 63)
    if #tokens == 0 then
      break
    end
    for i, entry in ipairs(redis.call('HMGET', KEYS[5], unpack(tokens))) do
      local polled, offered, wanted = string.match(entry or '', '^(%d+) (%d) (%d+) ')
      local is_me = tokens[i] == me
      wanted = is_me and weight or tonumber(wanted)
      if not is_me and (not polled or tonumber(polled) + @LIVE <= now) then
        dead[#dead + 1] = tokens[i]
      elseif is_me or offered == '0' then
        if wanted > room or #chosen == @OFFERS_MAX then
          return chosen, dead, mine
        end
        room = room - wanted
        mine = mine or is_me
        if not is_me then
          chosen[#chosen + 1] = { tokens[i], entry, wanted }
        end
      end
    end
    if first == 1 and #tokens == 63 then
      return chosen, dead, mine
    end
  end
  return chosen, dead, mine or (me and weight <= room)
end

-- Gives the chosen ones their permits for the grant window. The hints are sent by wake_all(), last of all.
-- Returns the last fence given.
local function offer_all(chosen, now, fence)
  for _, next in ipairs(chosen) do
    fence = fence + 1
    redis.call('HSET', KEYS[2], next[1], string.format('%.0f %.0f 0 ', next[3], fence))
    redis.call('ZADD', KEYS[1], now + @GRANT_WINDOW, next[1])
    redis.call('HSET', KEYS[5], next[1], (string.gsub(next[2], '^(%d+) 0 ', '%1 1 ')))
  end
  return fence
end

local function drop_waiters(dead)
  if #dead > 0 then
    redis.call('ZREM', KEYS[4], unpack(dead))
    redis.call('HDEL', KEYS[5], unpack(dead))
  end
end

local function drop_holders(tokens)
  if #tokens > 0 then
    redis.call('ZREM', KEYS[1], unpack(tokens))
    redis.call('HDEL', KEYS[2], unpack(tokens))
  end
end

-- Both keys of the holders live as long as the lease that ends last. `known` says that there were some before.
local function keep_holders(ttl, known)
  if not known or redis.call('PTTL', KEYS[1]) < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  if not known or redis.call('PTTL', KEYS[2]) < ttl then
    redis.call('PEXPIRE', KEYS[2], ttl)
  end
end

-- A user without channel rights fails here, after all writes: then the waiters' polls find the offers.
local function wake_all(chosen)
  for _, next in ipairs(chosen) do
    local client, seq = string.match(next[2], ' (%x+) (%d+)$')
    if client then
      redis.pcall('PUBLISH', 'stanchion:wake:' .. client, seq)
    end
  end
end

-- Who is to be offered what is free when so many are used, before anything is written; `me` leaves the line.
local function successors(now, meta, used, me)
  local limit = tonumber(meta[3])
  local chosen, dead = {}, {}
  if limit then
    chosen, dead = next_waiters(now, limit - used, me, 0)
  end
  return chosen, dead
end

-- After permits were given back, which left so many used: makes the offers.
local function hand_on(now_us, meta, used, chosen, dead)
  local fence = tonumber(meta[1])
  if #chosen > 0 then
    fence = offer_all(chosen, math.floor(now_us / 1000), math.max(fence or 0, now_us - 1))
    keep_holders(@GRANT_WINDOW, true)
  end
  for _, next in ipairs(chosen) do
    used = used + next[3]
  end
  if fence then
    redis.call('HSET', KEYS[3], 'used', used, 'fence', string.format('%.0f', fence))
  end
  drop_waiters(dead)
end
