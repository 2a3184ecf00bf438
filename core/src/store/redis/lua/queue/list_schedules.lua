-- Look at schedules. Reads only.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    1 "d" those that are due, "o" one, "p" a page; 2 at most so many; 3 id of the one; 4 wall ms until which those to
--          come count as due, or the score, and 5 the id after which the page begins
-- returns: {@SCHEDULES_FOUND, now ms, 1 if there may be a next page or 0, then per schedule: id, packed}

-- include record.lua
-- include order.lua

-- How many come before this place or are there. By halving: a score may be that of many.
local function rank_after(score, id)
  local low = redis.call('ZCOUNT', KEYS[@AGENDA], '-inf', string.format('(%s', score))
  local high = low + redis.call('ZCOUNT', KEYS[@AGENDA], score, score)
  for _ = 1, 60 do
    if low >= high then
      break
    end
    local middle = math.floor((low + high) / 2)
    if comes_after(redis.call('ZRANGE', KEYS[@AGENDA], middle, middle)[1], id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local most = tonumber(ARGV[2])
local ids, is_full = {}, 0
if ARGV[1] == 'd' then
  local till = math.max(now, tonumber(ARGV[4]))
  ids = redis.call('ZRANGE', KEYS[@AGENDA], '-inf', till, 'BYSCORE', 'LIMIT', 0, most)
elseif ARGV[1] == 'o' then
  ids[1] = ARGV[3]
else
  local first = ARGV[4] == '' and 0 or rank_after(ARGV[4], ARGV[5])
  ids = redis.call('ZRANGE', KEYS[@AGENDA], first, first + most)
  if #ids > most then
    is_full, ids[#ids] = 1, nil
  end
end
local reply = { @SCHEDULES_FOUND, now, is_full }
local found = #ids > 0 and redis.call('HMGET', KEYS[@SCHEDULES], unpack(ids)) or {}
for i, packed_schedule in ipairs(found) do
  if packed_schedule then
    reply[#reply + 1], reply[#reply + 2] = ids[i], packed_schedule
  end
end
return reply
