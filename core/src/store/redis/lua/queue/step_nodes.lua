-- Shared: nodes of flows that become tasks, and tasks of theirs that are cancelled.

-- include enqueue_task.lua
-- include cancel_task.lua

-- The nodes whose numbers stand from ARGV[i] on, unpacked, and the ids of their tasks, which are fetched.
local function nodes_of(id, i, count)
  local nodes, ids, places = {}, {}, {}
  for j = 0, count - 1 do
    places[j + 1] = string.format('%s\1%s', id, ARGV[i + j])
  end
  for from = 1, count, @CHUNK do
    local found = redis.call('HMGET', KEYS[@FLOW_NODES], unpack(places, from, math.min(from + @CHUNK_REST, count)))
    for j, text in ipairs(found) do
      local node = text and cmsgpack.unpack(text)
      nodes[from + j - 1] = node
      ids[from + j - 1] = node and string.format('%s/%s', id, node[@NODE_NAME]) or ''
    end
  end
  fetch(ids)
  return nodes, ids
end

local function put_nodes(id, i, count)
  local nodes, ids = nodes_of(id, i, count)
  for j = 1, count do
    local node, number = nodes[j], ARGV[i + j - 1]
    if node then
      -- Most nodes have the same options: what those say is read once, and is each one's in turn.
      local spec = spec_of(node[@NODE_OPTIONS])
      spec.node = string.format('%s %s', number, id)
      local has_body = node[@NODE_SIZE] > 0
      enqueue(ids[j], spec, has_body and redis.call('HGET', KEYS[@FLOW_NODES], string.format('%s\3%s', id, number)) or '')
      enqueued = enqueued + 1
    end
  end
end

local function cancel_nodes(id, i, count)
  local nodes, ids = nodes_of(id, i, count)
  for j = 1, count do
    if nodes[j] then
      cancel(ids[j])
    end
  end
end
