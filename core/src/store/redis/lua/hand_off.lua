-- Shared by the scripts that pass an exclusive lock on: the offer to the waiter that is next.

-- include line.lua

-- What an entry begins with: one waiter takes all there is.
local ENTRY = '^(%d+) (%d) '

-- Whether this library wrote the value.
local function ours(value)
  return #value == @TOKEN_LENGTH and string.find(value, '^@TOKEN_BEGINS%d+$') ~= nil
end

-- Sets the lock to the waiter's token for the grant window. The hint is sent by wake_all(), last of all.
-- Without a last fence there was no record, or it was forgotten: it begins here.
local function offer(next, now, fence, last_fence)
  redis.call('SET', KEYS[@LOCK], next[1], 'PX', @GRANT_WINDOW)
  redis.call('HSET', KEYS[@META], 'fence', string.format('%.0f', fence))
  if not last_fence then
    redis.call('HSET', KEYS[@META], 'born', string.format('%.0f', fence))
    redis.call('PEXPIRE', KEYS[@META], @META_TTL)
  end
  mark_offered(next, now)
end

-- Whether lockers of other programs are to come in now, rather than the next in line. A row of hand-offs ends after some,
-- if it took as long as they were seen to have the lock before. If they let their turns pass, they are given one now and
-- then, which shows whether there are any.
local function foreign_turn(now, hand_offs, row_until, share_until, share_windows)
  local count, left = (tonumber(hand_offs) or 0) + 1, tonumber(share_windows) or 0
  local is_due = left > 0 or (tonumber(share_until) or 0) + @SHARE_PROBE <= now
  if count <= @SHARE_AFTER or (tonumber(row_until) or 0) > now or not is_due then
    redis.call('HSET', KEYS[@META], 'hand_offs', string.format('%.0f', count))
    return false
  end
  redis.call('HDEL', KEYS[@META], 'hand_offs')
  redis.call('HSET', KEYS[@META], 'share_until', string.format('%.0f', now + @SHARE_WINDOW), 'share_windows',
    math.max(left - 1, 0))
  return true
end

-- Takes the lock from its present value and offers it to the next waiter; returns the entries to wake.
-- All reads come first; the first write is a removing one, so that it works when memory is full.
local function hand_off(time, foreign_share)
  local now_us = time[1] * 1000000 + time[2]
  local now = math.floor(now_us / 1000)
  local chosen, dead, drowsy = look_along(now, 1, nil, 0, ENTRY)
  local meta = redis.call('HMGET', KEYS[@META], 'fence', 'hand_offs', 'row_until', 'share_until', 'share_windows')
  redis.call('DEL', KEYS[@LOCK])
  drop(dead)
  if not chosen[1] then
    return drowsy
  end
  if foreign_share and foreign_turn(now, meta[2], meta[3], meta[4], meta[5]) then
    -- Not an offer: who is next is to look out for them.
    return hints_for(chosen, drowsy)
  end
  offer(chosen[1], now, math.max((tonumber(meta[1]) or 0) + 1, now_us), meta[1])
  return hints_for(chosen, drowsy)
end
