-- Shared: the flows that a script touches, and what becomes of them.

-- include check_flows.lua
-- include write_outbox.lua

-- Id -> flow as it is stored, or is to be stored; false if there is none.
local flows = {}

local function flow_of(id)
  if flows[id] == nil then
    local packed_flow = redis.call('HGET', KEYS[@FLOWS], id)
    flows[id] = packed_flow and cmsgpack.unpack(packed_flow)
  end
  return flows[id]
end

-- The same of one that is no draft.
local function begun(id)
  local flow = flow_of(id)
  return flow and flow[@IS_DRAFT] == 0 and flow
end

-- Stores its place among those that live, or have ended, and it itself.
local function write_flow(id, flow)
  local at = flow[@FLOW_ENDED] > 0 and flow[@FLOW_ENDED] or @FLOW_BASE + flow[@FLOW_CREATED]
  redis.call('ZADD', KEYS[@FLOW_TIMES], at, id)
  redis.call('HSET', KEYS[@FLOWS], id, cmsgpack.pack(flow))
end

-- So many more live. The first one's tasks need not be looked for at once.
local function count_live(more)
  open_outbox()
  if outbox[@LIVE_FLOWS] == 0 then
    outbox[@WALK_AT] = now + @WALK_AGAIN
  end
  outbox[@LIVE_FLOWS] = math.max(outbox[@LIVE_FLOWS] + more, 0)
end

local function drop_nodes(id, count)
  for first = 0, count - 1, @CHUNK / 4 do
    local gone = {}
    for number = first, math.min(first + @CHUNK / 4, count) - 1 do
      gone[#gone + 1] = string.format('%s\1%.0f', id, number)
      gone[#gone + 1] = string.format('%s\2%.0f', id, number)
      gone[#gone + 1] = string.format('%s\3%.0f', id, number)
    end
    redis.call('HDEL', KEYS[@FLOW_NODES], unpack(gone))
  end
end

-- How many nodes went with it.
local function drop_flow(id)
  local flow = flow_of(id)
  local count = flow and flow[@NODE_COUNT] or 0
  redis.call(
    'HDEL', KEYS[@FLOWS], id, string.format('\1%s', id), string.format('\2%s', id), string.format('\3%s', id)
  )
  redis.call('ZREM', KEYS[@FLOW_TIMES], id)
  drop_nodes(id, count)
  flows[id] = false
  return count
end

-- Those that live have no end; what is left of others goes some time after the last of them.
local function keep_flows()
  if outbox and outbox[@LIVE_FLOWS] > 0 then
    redis.call('PERSIST', KEYS[@FLOWS])
    redis.call('PERSIST', KEYS[@FLOW_NODES])
    redis.call('PERSIST', KEYS[@FLOW_TIMES])
  else
    redis.call('PEXPIRE', KEYS[@FLOWS], @FLOW_AGE)
    redis.call('PEXPIRE', KEYS[@FLOW_NODES], @FLOW_AGE)
    redis.call('PEXPIRE', KEYS[@FLOW_TIMES], @FLOW_AGE)
  end
end
