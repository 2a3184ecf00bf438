-- Add a flow, or nodes to one. One of many nodes comes in parts, and is a draft until the part with the plan is there.
-- keys:    the queue's; FLOWS, FLOW_NODES, FLOW_TIMES
-- args:    1 id, 2 token, 3 number of the first node, 4 version of the flow that they are added to or "", 5 whether this has
--          the plan 0 or 1, 6 graph, 7 names, 8 states, 9 summary; then per node: name, queue or "", options, body
-- returns: {@PUT} | {@FLOW_EXISTS} | {@FULL} | {@STALE} | {@ABSENT}

-- include record.lua
-- include wake.lua
-- include check.lua
-- include keep.lua
-- include outbox.lua
-- include flows.lua

local id, token, adds_to, has_plan = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[5] == '1'
check_live()
check_flows()
local flow, left = flow_of(id), false
local is_same = flow and flow[@FLOW_TOKEN] == token
if adds_to then
  if not begun(id) or flow[@FLOW_ENDED] > 0 then
    return { @ABSENT }
  elseif is_same or flow[@FLOW_VERSION] ~= adds_to then
    return { is_same and @PUT or @STALE }
  end
elseif begun(id) then
  return { is_same and @PUT or @FLOW_EXISTS }
elseif flow and not is_same then
  -- Another part of it may be on its way.
  if now - flow[@FLOW_CREATED] < @CALL_TTL then
    return { @STALE }
  end
  flow, left = false, flow
end
local first = tonumber(ARGV[3])
if first > (flow and flow[@NODE_COUNT] or 0) then
  return { @ABSENT }
elseif not flow and max_len and live >= max_len then
  return { @FULL }
end

local function write_nodes()
  local heads, texts = {}, {}
  for i = 10, #ARGV, 4 do
    local number, body = first + (i - 10) / 4, ARGV[i + 3]
    heads[#heads + 1] = string.format('%s\1%.0f', id, number)
    heads[#heads + 1] = cmsgpack.pack({ ARGV[i], ARGV[i + 1], ARGV[i + 2], #body })
    if body ~= '' then
      texts[#texts + 1], texts[#texts + 2] = string.format('%s\3%.0f', id, number), body
    end
  end
  for i = 1, #heads, @CHUNK do
    redis.call('HSET', KEYS[@FLOW_NODES], unpack(heads, i, math.min(i + @CHUNK_REST, #heads)))
  end
  for i = 1, #texts, @CHUNK do
    redis.call('HSET', KEYS[@FLOW_NODES], unpack(texts, i, math.min(i + @CHUNK_REST, #texts)))
  end
  return first + #heads / 2
end

flow = flow or { 0, token, now, 0, 0, 0, 1, '' }
local begins = has_plan and flow[@IS_DRAFT] == 1
flow[@FLOW_VERSION], flow[@FLOW_TOKEN] = next_number(), token
-- What takes memory comes first. Without the right to one of these commands a draft is left, which nobody sees.
redis.call('HSET', KEYS[@FLOWS], id, cmsgpack.pack(flow))
if left then
  drop_nodes(id, left[@NODE_COUNT])
end
flow[@NODE_COUNT] = math.max(flow[@NODE_COUNT], write_nodes())
if has_plan then
  redis.call(
    'HSET', KEYS[@FLOWS], string.format('\1%s', id), ARGV[6], string.format('\2%s', id), ARGV[7],
    string.format('\3%s', id), ARGV[8]
  )
  flow[@IS_DRAFT], flow[@FLOW_SUMMARY] = 0, ARGV[9]
  post(@NODE_BEGIN, string.format('0 %s', id), 0)
end
write_flow(id, flow)
if begins then
  count_live(1)
end
keep()
keep_flows()
if has_plan then
  wake()
end
send_hints()
return { @PUT }
