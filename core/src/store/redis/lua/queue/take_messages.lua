-- Shared: messages that are worked off.

-- include outbox.lua
-- include flows.lua

-- The results to keep, and those to drop: field of FLOW_NODES -> number of the last message that says it, its bytes (false if
-- it has no result), and id of the flow; and the fields in order.
local said, said_fields = {}, {}

-- What it says of a node of a flow of this queue.
local function note_result(number, message)
  local node, id = string.match(message[@MESSAGE_MARK], '^(%d+) ([^\n]*)$')
  if message[@MESSAGE_EVENT] ~= @NODE_DONE or not id then
    return
  end
  local flow, field = begun(id), string.format('%s\2%s', id, node)
  if flow and tonumber(node) < flow[@NODE_COUNT] then
    if not said[field] then
      said_fields[#said_fields + 1] = field
    end
    said[field] = { number, message[@RESULT_SIZE], id }
  end
end

-- Keeps them with their flows, as far as these have room, in place of what was there.
local function keep_results()
  local gone, sizes = {}, {}
  for _, field in ipairs(said_fields) do
    local number, size, id = said[field][1], said[field][2], said[field][3]
    local flow = flow_of(id)
    sizes[id] = sizes[id] or flow[@RESULT_BYTES]
    if flow[@RESULT_BYTES] > 0 then
      flow[@RESULT_BYTES] = math.max(flow[@RESULT_BYTES] - redis.call('HSTRLEN', KEYS[@FLOW_NODES], field), 0)
    end
    local result = size and flow[@RESULT_BYTES] + size <= @FLOW_RESULTS
      and redis.call('HGET', KEYS[@BODY], string.format('\2%.0f', number))
    if result then
      flow[@RESULT_BYTES] = flow[@RESULT_BYTES] + size
      redis.call('HSET', KEYS[@FLOW_NODES], field, result)
    else
      gone[#gone + 1] = field
    end
  end
  for i = 1, #gone, @CHUNK do
    redis.call('HDEL', KEYS[@FLOW_NODES], unpack(gone, i, math.min(i + @CHUNK_REST, #gone)))
  end
  for _, field in ipairs(said_fields) do
    local id = said[field][3]
    if sizes[id] ~= flow_of(id)[@RESULT_BYTES] then
      write_flow(id, flow_of(id))
      sizes[id] = flow_of(id)[@RESULT_BYTES]
    end
  end
end

-- Takes the messages with these numbers away.
local function take_messages(first, last)
  local texts = {}
  for from = first, last, @CHUNK do
    local names = {}
    for number = from, math.min(from + @CHUNK_REST, last) do
      names[#names + 1] = string.format('\2%.0f', number)
    end
    for i, found in ipairs(redis.call('HMGET', KEYS[@STATE], unpack(names))) do
      local message = found and cmsgpack.unpack(found)
      if message then
        note_result(from + i - 1, message)
      end
      if message and message[@RESULT_SIZE] then
        texts[#texts + 1] = names[i]
      end
    end
    redis.call('HDEL', KEYS[@STATE], unpack(names))
  end
  keep_results()
  for i = 1, #texts, @CHUNK do
    redis.call('HDEL', KEYS[@BODY], unpack(texts, i, math.min(i + @CHUNK_REST, #texts)))
  end
  outbox[@FIRST_MESSAGE] = last + 1
end
