-- Shared by the scripts that pass the lock on: which waiter is next, and the offer to it.
-- A waiter's entry is "last poll ms, offered 0 or 1, owner, client, seq"; an older library writes no owner.

-- Whether this library wrote the value: sixteen nines and 39 more digits.
local function ours(value)
  return #value == 55 and string.find(value, '^9999999999999999%d+$') ~= nil
end

-- The oldest live waiter whose offer has not run out unanswered, or `me`; then its entry, then the
-- dead ones passed on the way. Mostly it is the first; it looks at 64 at most, and a later poll goes on
-- from there.
local function next_waiter(now, me)
  local dead = {}
  for first = 0, 1 do
    local tokens = redis.call('ZRANGE', KEYS[3], first, first * 63)
    if #tokens == 0 then
      break
    end
    local entries = redis.call('HMGET', KEYS[4], unpack(tokens))
    for i, token in ipairs(tokens) do
      if token == me then
        return token, entries[i], dead
      end
      local polled, offered = string.match(entries[i] or '', '^(%d+) (%d) ')
      if not polled or tonumber(polled) + @LIVE <= now then
        dead[#dead + 1] = token
      elseif offered == '0' then
        return token, entries[i], dead
      end
    end
  end
  return nil, nil, dead
end

local function drop(dead)
  if #dead > 0 then
    redis.call('ZREM', KEYS[3], unpack(dead))
    redis.call('HDEL', KEYS[4], unpack(dead))
  end
end

-- Sets the lock to the waiter's token for the grant window. The hint is sent by wake(), last of all.
-- Without a last fence there was no record, or it was forgotten: it begins here.
local function offer(token, entry, fence, last_fence)
  redis.call('SET', KEYS[1], token, 'PX', @GRANT_WINDOW)
  redis.call('HSET', KEYS[2], 'fence', string.format('%.0f', fence))
  if not last_fence then
    redis.call('HSET', KEYS[2], 'born', string.format('%.0f', fence))
    redis.call('PEXPIRE', KEYS[2], @META_TTL)
  end
  redis.call('HSET', KEYS[4], token, (string.gsub(entry, '^(%d+) 0 ', '%1 1 ')))
end

-- Takes the lock from its present value and offers it to the next waiter; returns the entry to wake.
-- All reads come first; the first write is a removing one, so that it works when memory is full.
local function hand_off(time, foreign_share)
  local now_us = time[1] * 1000000 + time[2]
  local now = math.floor(now_us / 1000)
  local token, entry, dead = next_waiter(now, nil)
  local meta = redis.call('HMGET', KEYS[2], 'fence', 'hand_offs')
  redis.call('DEL', KEYS[1])
  drop(dead)
  if not token then
    return nil
  end
  if foreign_share then
    local hand_offs = (tonumber(meta[2]) or 0) + 1
    if hand_offs > @SHARE_AFTER then
      redis.call('HDEL', KEYS[2], 'hand_offs')
      redis.call('HSET', KEYS[2], 'share_until', string.format('%.0f', now + @SHARE_WINDOW))
      return nil
    end
    redis.call('HSET', KEYS[2], 'hand_offs', string.format('%.0f', hand_offs))
  end
  offer(token, entry, math.max((tonumber(meta[1]) or 0) + 1, now_us), meta[1])
  return entry
end

-- A user without channel rights fails here, after all writes: then the waiter's poll finds the offer.
local function wake(entry)
  local client, seq = string.match(entry, ' (%x+) (%d+)$')
  if client then
    redis.pcall('PUBLISH', 'stanchion:wake:' .. client, seq)
  end
end
