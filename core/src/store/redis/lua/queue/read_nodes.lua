-- Nodes of a flow, or their results, as many as there is room for, but always one. Reads only.
-- keys:    the queue's; FLOW_NODES
-- args:    1 flow, 2 whether results are asked for 0 or 1; then the numbers of nodes
-- returns: {@NODES_FOUND, then per node: its result; or packed node and body; nothing, once, if there is none}

local flow, reply, size = ARGV[1], { @NODES_FOUND }, 0

-- Whether bytes are told that are so many more.
local function fits(more)
  size = size + more
  return #reply == 1 or size <= @MAX_REPLY_BYTES
end

for i = 3, #ARGV do
  local length = #reply
  if ARGV[2] == '1' then
    local field = string.format('%s\2%s', flow, ARGV[i])
    if not fits(redis.call('HSTRLEN', KEYS[@FLOW_NODES], field)) then
      break
    end
    reply[length + 1] = redis.call('HGET', KEYS[@FLOW_NODES], field)
  else
    local node = redis.call('HGET', KEYS[@FLOW_NODES], string.format('%s\1%s', flow, ARGV[i]))
    if not fits(node and cmsgpack.unpack(node)[@NODE_SIZE] or 0) then
      break
    end
    reply[length + 1] = node
    if node then
      reply[length + 2] = redis.call('HGET', KEYS[@FLOW_NODES], string.format('%s\3%s', flow, ARGV[i])) or ''
    end
  end
end
return reply
