-- Shared: the flows of a queue, one after the other.

-- include flows.lua

-- Id of the one whose turn it is, or ''; and the id of one to be dropped: a draft that was not gone on with, or one of which
-- nothing else is there any more.
local function next_walk()
  local ended = redis.call('ZCOUNT', KEYS[@FLOW_TIMES], '-inf', '(@FLOW_BASE')
  local count = redis.call('ZCARD', KEYS[@FLOW_TIMES]) - ended
  outbox[@LIVE_FLOWS] = math.min(outbox[@LIVE_FLOWS], count)
  outbox[@WALK_AT] = now + math.max(math.floor(@WALK_AGAIN / math.max(outbox[@LIVE_FLOWS], 1)), @WALK_EVERY)
  -- A draft that is still young is passed by.
  for _ = 1, math.min(count, @OFFERS_MAX) do
    local rank = outbox[@WALK_RANK] < count and outbox[@WALK_RANK] or 0
    local id = redis.call('ZRANGE', KEYS[@FLOW_TIMES], ended + rank, ended + rank)[1]
    local flow = flow_of(id)
    outbox[@WALK_RANK] = rank
    if not flow or (flow[@IS_DRAFT] == 1 and now - flow[@FLOW_CREATED] >= @FLOW_DRAFT) then
      outbox[@LIVE_FLOWS] = math.min(outbox[@LIVE_FLOWS], count - 1)
      return '', id
    end
    outbox[@WALK_RANK] = rank + 1
    if flow[@IS_DRAFT] == 0 then
      return id
    end
  end
  return ''
end
