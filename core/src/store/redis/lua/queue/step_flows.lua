-- Work messages of the outbox off, and do what flows do then: all of it, or, if anything is not as it was read, nothing.
-- keys:    the queue's; FLOWS, FLOW_NODES, FLOW_TIMES
-- args:    1 number of the oldest message, 0 if none is worked off, 2 number of the last one that is; then per flow: id, version,
--          whether it has ended, whether there is more to do for it, states, summary, how many nodes are put in, how many are
--          cancelled; then the numbers of all those
-- returns: {@DONE} | {@STALE}; what the puts did, as an enqueue says it (@ADDED, @KEPT, @REPLACED, @SUCCESSOR, @SKIPPED or
--          @FULL), is not told

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include outbox.lua
-- include flows.lua
-- include step_nodes.lua
-- include take_messages.lua
-- include trim_flows.lua

local first, through = tonumber(ARGV[1]), tonumber(ARGV[2])

local function is_as_read()
  if first > 0 and not (outbox and outbox[@FIRST_MESSAGE] == first and first <= outbox[@LAST_MESSAGE]
    and through >= first - 1 and through <= outbox[@LAST_MESSAGE]) then
    return false
  end
  local i = 3
  for _ = 1, #ARGV do
    if i > #ARGV then
      break
    end
    local flow = begun(ARGV[i])
    if not flow or flow[@FLOW_VERSION] ~= tonumber(ARGV[i + 1]) then
      return false
    end
    i = i + 8 + tonumber(ARGV[i + 6]) + tonumber(ARGV[i + 7])
  end
  return true
end

-- Ids of the flows, and their states.
local stepped, states = {}, {}

-- What the flow does whose step stands from ARGV[i] on; where the next one's does.
local function step(i)
  local id, ends, puts, cancels = ARGV[i], ARGV[i + 2] == '1', tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7])
  local flow = flow_of(id)
  put_nodes(id, i + 8, puts)
  cancel_nodes(id, i + 8 + puts, cancels)
  if ARGV[i + 3] == '1' then
    post(@NODE_BEGIN, string.format('0 %s', id), 0)
  end
  if ends ~= (flow[@FLOW_ENDED] > 0) then
    count_live(ends and -1 or 1)
    flow[@FLOW_ENDED] = ends and now or 0
  end
  flow[@FLOW_VERSION], flow[@FLOW_SUMMARY] = next_number(), ARGV[i + 5]
  stepped[#stepped + 1], states[id] = id, ARGV[i + 4]
  return i + 8 + puts + cancels
end

check_live()
check_dead()
check_flows()
if not is_as_read() then
  return { @STALE }
end
local i = 3
for _ = 1, #ARGV do
  if i > #ARGV then
    break
  end
  i = step(i)
end
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
if outbox then
  outbox[@LAST_STEP] = now
end
if first > 0 and through >= first then
  take_messages(first, through)
end
for _, id in ipairs(stepped) do
  write_flow(id, flow_of(id))
  redis.call('HSET', KEYS[@FLOWS], string.format('\3%s', id), states[id])
end
write()
write_deaths()
write_cancelled()
trim_flows()
if outbox and message_count == 0 then
  write_outbox()
end
keep()
keep_flows()
if chance or message_count > 0 then
  wake()
end
send_hints()
return { @DONE }
