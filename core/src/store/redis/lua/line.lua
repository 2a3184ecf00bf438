-- Shared by all scripts that look along a line: who is next, who is dead, and who is to be roused.
-- Keys: 3 line, 4 waiters. A waiter's entry is "last poll ms, offered 0 or 1, owner, client, seq"; of permits the weight
-- comes before the owner; an older library writes no owner. Whoever is far back polls seldom: its last poll is written
-- so far ahead as it may be silent for longer than the first. So all count as dead by the same rule.

-- Looks along the line from its head, at a bounded number. Who fits into `room` is next, and the first who does not
-- holds up those behind it. `me` is the caller, who wants `weight`, in the line or else behind all of it.
-- Returns the others that are next, each { token, entry, weight }; the dead that were passed; the entries of those near
-- the head who poll seldom, and have to ask now, since only they would notice that the next ones are dead; whether it
-- is the caller's turn; and whether the line may go on with those who come before the caller.
local function look_along(now, room, me, weight, pattern)
  local chosen, dead, drowsy, mine, open = {}, {}, {}, false, true
  for first = 0, @LINE_NEAR, @LINE_NEAR do
    local last = first == 0 and @LINE_NEAR - 1 or @LINE_SCAN - 1
    local tokens = redis.call('ZRANGE', KEYS[@LINE], first, last)
    if #tokens == 0 then
      break
    end
    for i, entry in ipairs(redis.call('HMGET', KEYS[@WAITERS], unpack(tokens))) do
      local polled, offered, wanted = string.match(entry or '', pattern)
      local is_me, is_next = tokens[i] == me, false
      if not is_me and (not polled or tonumber(polled) + @LIVE <= now) then
        dead[#dead + 1] = tokens[i]
      else
        if open and (is_me or offered == '0') then
          wanted = is_me and weight or tonumber(wanted or 1)
          open = wanted <= room and #chosen < @OFFERS_MAX
          is_next = open and not is_me
          mine = mine or open and is_me
          room = open and room - wanted or room
        end
        if is_next then
          chosen[#chosen + 1] = { tokens[i], entry, wanted }
        elseif not is_me and tonumber(polled) > now then
          drowsy[#drowsy + 1] = entry
        elseif not open then
          return chosen, dead, drowsy, mine, false
        end
      end
    end
    if not open then
      return chosen, dead, drowsy, mine, false
    end
    if first > 0 and #tokens > last - first and not mine then
      -- Nobody knows whether those behind live. Whoever of them does goes on from here.
      local others = redis.call('ZRANGE', KEYS[@LINE], @LINE_SCAN, @LINE_SCAN + @LINE_NEAR - 1)
      if #others > 0 then
        return chosen, dead, redis.call('HMGET', KEYS[@WAITERS], unpack(others)), false, true
      end
    end
  end
  return chosen, dead, drowsy, mine or me and weight <= room, false
end

local function drop(dead)
  if #dead > 0 then
    redis.call('ZREM', KEYS[@LINE], unpack(dead))
    redis.call('HDEL', KEYS[@WAITERS], unpack(dead))
  end
end

-- Notes the offer in the entry. Who does not answer it is dead as soon as the first of the line would be.
local function mark_offered(next, now)
  local polled = string.match(next[2], '^%d+')
  local mark = string.format('%.0f 1 ', math.min(tonumber(polled), now))
  redis.call('HSET', KEYS[@WAITERS], next[1], (string.gsub(next[2], '^%d+ 0 ', mark)))
end

-- Puts the token at the end of the line, or notes that it polled. `dead` are dropped, and come before it; `rest` is its
-- entry from the weight or owner on. Returns how many are before it, and until when it counts as live.
local function line_up(now_us, token, dead, rest)
  local place = redis.call('ZRANK', KEYS[@LINE], token)
  local rank = (place or redis.call('ZCARD', KEYS[@LINE])) - #dead
  local further = math.min(math.max(rank + 1 - @LINE_NEAR, 0) * @PLACE_PAUSE, @PLACES_PAUSE_MOST)
  local polled = math.floor(now_us / 1000) + further
  redis.call('HSET', KEYS[@WAITERS], token, string.format('%.0f 0 %s', polled, rest))
  if not place then
    local last = redis.call('ZREVRANGE', KEYS[@LINE], 0, 0, 'WITHSCORES')
    local arrival = math.max((tonumber(last[2]) or 0) + 1, now_us)
    redis.call('ZADD', KEYS[@LINE], string.format('%.0f', arrival), token)
  end
  drop(dead)
  redis.call('PEXPIRE', KEYS[@LINE], @LINE_TTL)
  redis.call('PEXPIRE', KEYS[@WAITERS], @LINE_TTL)
  return rank, polled + @LIVE
end

-- Those who are next, and those who have to look whether they answer.
local function hints_for(chosen, drowsy)
  local entries = {}
  for _, next in ipairs(chosen) do
    entries[#entries + 1] = next[2]
  end
  for _, entry in ipairs(drowsy) do
    entries[#entries + 1] = entry
  end
  return entries
end

-- Last of all. A user without channel rights fails here, after all writes: then the waiters' polls find the offers.
local function wake_all(entries)
  for _, entry in ipairs(entries) do
    local client, seq = string.match(entry or '', ' (%x+) (%d+)$')
    if client then
      redis.pcall('PUBLISH', '@CHANNELS' .. client, seq)
    end
  end
end
