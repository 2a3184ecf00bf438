-- Shared: lockers of other programs, beside which our line waits. `since` and `seen` tell when their present turn was
-- noticed first and last; both are in meta.

-- Ours again: the row of hand-offs that begins may last some times as long as others were seen to have the lock. Seen
-- once, it was one of them; or so many as come between two polls.
local function begin_row(now, hand_offs, since, seen)
  if hand_offs then
    redis.call('HDEL', KEYS[@META], 'hand_offs')
  end
  if since then
    local turn = (tonumber(seen) or 0) - since
    local row = turn > 0 and math.min(@SHARE_ROW * (turn + @FOREIGN_POLL), @SHARE_ROW_MOST) or 0
    redis.call('HSET', KEYS[@META], 'row_until', string.format('%.0f', now + row))
    redis.call('HDEL', KEYS[@META], 'foreign_since', 'foreign_seen')
  end
end

-- Notes for a waiter that a foreign value is in the way: they have had their turn, ours is the next. Returns when to ask
-- again. Nobody tells when such a locker is done, or comes: so the first in line asks often.
local function look_out(now_us, is_foreign, since, seen, share_left, is_first, remaining)
  local now = math.floor(now_us / 1000)
  if is_foreign then
    local is_same = (tonumber(seen) or 0) + @GRANT_WINDOW > now
    redis.call('HSET', KEYS[@META], 'share_until', '0', 'share_windows', @SHARE_WINDOWS, 'foreign_since',
      is_same and since or string.format('%.0f', now), 'foreign_seen', string.format('%.0f', now))
  end
  if not is_first or not is_foreign and share_left <= 0 then
    return remaining
  end
  local soon = is_foreign and math.floor(@FOREIGN_POLL * (0.7 + now_us % 61 / 100)) or 1
  return remaining < 0 and soon or math.min(remaining, soon)
end
