-- Take several locks, all or none. Where one is held, or somebody waits for it or did a moment ago, acquire
-- knows whose turn it is.
-- keys:    of each lock: LOCK[i], META[i], ENDED[i]
-- args:    1 token, 2 ttl ms, 3 owner, then the least fence of each lock
-- returns: {@GRANTED, fence of each lock} | {@BUSY} | {@ENDED}
local token, ttl = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local function later(moment)
  return moment and tonumber(moment) > now
end

-- What is to be written about each lock. All is read before the first write.
local fences, borns, ours, calms, unsettled, hand_offs = {}, {}, {}, {}, {}, {}
for i = 1, #ARGV - 3 do
  local value = redis.call('GET', KEYS[@LOCK[i]])
  local left = redis.call('PTTL', KEYS[@LOCK[i]])
  local meta = redis.call('HMGET', KEYS[@META[i]], 'fence', 'calm_until', 'wait_until', 'ended_until', 'share_until', 'hand_offs')
  if later(meta[4]) and redis.call('EXISTS', KEYS[@ENDED[i]]) == 1 then
    return { @ENDED }
  end
  if value ~= token and (value or later(meta[3]) or later(meta[5])) then
    return { @BUSY }
  end
  local last_fence = tonumber(meta[1])
  if value then
    -- An earlier copy of this request took it.
    fences[i] = math.max(last_fence or now_us, ARGV[i + 3])
  else
    fences[i] = math.max((last_fence or 0) + 1, now_us, ARGV[i + 3])
  end
  ours[i] = value and left >= ttl
  borns[i] = not meta[1] and math.min(fences[i], now_us)
  calms[i] = later(meta[2]) and #ARGV[2] < 6
  unsettled[i] = later(meta[3]) or later(meta[4])
  hand_offs[i] = meta[6]
end

for i = 1, #ARGV - 3 do
  if not ours[i] then
    redis.call('SET', KEYS[@LOCK[i]], token, 'PX', ttl)
  end
  redis.call('HSET', KEYS[@META[i]], 'fence', string.format('%.0f', fences[i]), 'owner', ARGV[3], 'since', time[1])
  if borns[i] then
    redis.call('HSET', KEYS[@META[i]], 'born', string.format('%.0f', borns[i]))
  end
  if not calms[i] then
    if not unsettled[i] then
      redis.call('HSET', KEYS[@META[i]], 'calm_until', string.format('%.0f', now + @META_REFRESH))
    end
    redis.call('PEXPIRE', KEYS[@META[i]], math.max(@META_TTL, @META_BEYOND + ttl))
  end
  if hand_offs[i] then
    redis.call('HDEL', KEYS[@META[i]], 'hand_offs')
  end
end
return { @GRANTED, unpack(fences) }
