-- Flows: those that have not ended, then the others, of each the latest first. Reads only.
-- keys:    the queue's; FLOWS, FLOW_TIMES
-- args:    1 at most so many, 2 part after whose place the page begins: 0, @PART_FLOWS or @PART_FLOWS_ENDED, and of that place:
--          3 ms, 4 id
-- returns: {@FLOWS_FOUND, the next page's place: part or 0, ms, id; then per flow: id, packed}

-- include order.lua

-- How many come before this place, from the one that ended first on. By halving: a score may be that of many.
local function rank_of(score, id)
  local low = redis.call('ZCOUNT', KEYS[@FLOW_TIMES], '-inf', string.format('(%.0f', score))
  local text = string.format('%.0f', score)
  local high = low + redis.call('ZCOUNT', KEYS[@FLOW_TIMES], text, text)
  for _ = 1, 60 do
    if low >= high then
      break
    end
    local middle = math.floor((low + high) / 2)
    if comes_after(id, redis.call('ZRANGE', KEYS[@FLOW_TIMES], middle, middle)[1]) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local most, part = tonumber(ARGV[1]), tonumber(ARGV[2])
local last
if part == 0 then
  last = redis.call('ZCARD', KEYS[@FLOW_TIMES]) - 1
else
  last = rank_of(tonumber(ARGV[3]) + (part == @PART_FLOWS and @FLOW_BASE or 0), ARGV[4]) - 1
end
local reply = { @FLOWS_FOUND, 0, '', '' }
if last < 0 then
  return reply
end
local found = redis.call('ZRANGE', KEYS[@FLOW_TIMES], math.max(last - most + 1, 0), last, 'WITHSCORES')
local ids = {}
for i = #found - 1, 1, -2 do
  ids[#ids + 1] = found[i]
end
for i, packed_flow in ipairs(#ids > 0 and redis.call('HMGET', KEYS[@FLOWS], unpack(ids)) or {}) do
  if packed_flow and cmsgpack.unpack(packed_flow)[@IS_DRAFT] == 0 then
    reply[#reply + 1], reply[#reply + 2] = ids[i], packed_flow
  end
end
if last >= most then
  local score = tonumber(found[2])
  local lives = score >= @FLOW_BASE
  reply[2], reply[4] = lives and @PART_FLOWS or @PART_FLOWS_ENDED, found[1]
  reply[3] = string.format('%.0f', lives and score - @FLOW_BASE or score)
end
return reply
