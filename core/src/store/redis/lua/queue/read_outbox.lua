-- Look at what the outbox has, and at the flows that it is about; and whose turn it is to have its tasks looked for.
-- keys:    the queue's; FLOWS, FLOW_NODES, FLOW_TIMES
-- args:    1 at most so many messages
-- returns: {@OUTBOX_FOUND, whether there are more 0 or 1, id of the flow whose turn it is or "", how many messages; then per
--          message: number, event, mark, retries, result or nothing; then per flow: id, version, graph, states}

-- include record.lua
-- include check.lua
-- include keep.lua
-- include flows.lua
-- include flows_due.lua

check_live()
check_flows()
local reply = { @OUTBOX_FOUND, 0, '', 0 }
if not outbox then
  return reply
end
-- Ids of the flows that messages are about, and whether they are known to be.
local about, is_about = {}, {}
local told, told_size, moved_size = 0, 0, 0

local function tell_message(number, message)
  local length, size = #reply, message[@RESULT_SIZE]
  told = told + 1
  reply[length + 1], reply[length + 2], reply[length + 3] = number, message[@MESSAGE_EVENT], message[@MESSAGE_MARK]
  reply[length + 4], reply[length + 5] = message[@MESSAGE_RETRIES], false
  if size and string.find(message[@MESSAGE_MARK], '\n', 1, true) then
    reply[length + 5] = redis.call('HGET', KEYS[@BODY], string.format('\2%.0f', number)) or ''
  end
end

-- Whether there is room for a message, and for the flow that it is about. A result that a step only moves counts apart.
local function fits(message)
  local size, id = message[@RESULT_SIZE] or 0, string.match(message[@MESSAGE_MARK], '^%d+ ([^\n]*)$')
  local is_new = id and not is_about[id] and begun(id)
  if id then
    moved_size, size = moved_size + size, 0
  end
  if is_new then
    size = redis.call('HSTRLEN', KEYS[@FLOWS], string.format('\1%s', id))
      + redis.call('HSTRLEN', KEYS[@FLOWS], string.format('\3%s', id))
  end
  told_size = told_size + size
  if told > 0 and (told_size > @MAX_REPLY_BYTES or moved_size > @MAX_MOVED_BYTES) then
    return false
  end
  if is_new then
    about[#about + 1], is_about[id] = id, true
  end
  return true
end

-- Tells messages from the oldest on; how many were looked at, and how many of those before the first are not there any more:
-- somebody deleted them.
local function tell_messages(first, most)
  local names, gone = {}, 0
  for i = 1, most do
    names[i] = string.format('\2%.0f', first + i - 1)
  end
  local found = most > 0 and redis.call('HMGET', KEYS[@STATE], unpack(names)) or {}
  for i = 1, most do
    local message = found[i] and cmsgpack.unpack(found[i])
    if message and not fits(message) then
      return i - 1, gone
    elseif message then
      tell_message(first + i - 1, message)
    elseif told == 0 then
      gone = i
    end
  end
  return most, gone
end

local count = outbox[@LAST_MESSAGE] - outbox[@FIRST_MESSAGE] + 1
local looked, gone = tell_messages(outbox[@FIRST_MESSAGE], math.min(tonumber(ARGV[1]), @NODES_BATCH, count))
reply[2], reply[4] = looked < count and 1 or 0, told
for _, id in ipairs(about) do
  local length = #reply
  local found = redis.call('HMGET', KEYS[@FLOWS], string.format('\1%s', id), string.format('\3%s', id))
  reply[length + 1], reply[length + 2] = id, flow_of(id)[@FLOW_VERSION]
  reply[length + 3], reply[length + 4] = found[1] or '', found[2] or ''
end
local walks, dead_draft = is_walk_due(), false
if walks then
  -- include next_walk.lua
  reply[3], dead_draft = next_walk()
end
if walks or gone > 0 then
  -- Changes nothing; the first write decides whether a server without memory lets the script write.
  redis.call('PERSIST', KEYS[@STATE])
  if dead_draft then
    drop_flow(dead_draft)
  end
  outbox[@FIRST_MESSAGE] = outbox[@FIRST_MESSAGE] + gone
  write_outbox()
  keep()
  keep_flows()
end
return reply
