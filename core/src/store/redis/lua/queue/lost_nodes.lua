-- Look for tasks that are nodes of flows. Reads only.
-- keys:    the queue's
-- args:    per node: id of its task, its mark
-- returns: {@NODES_FOUND, places of those without a task of which the outbox says nothing, from zero; none if that has too many
--          messages to look at}

-- include record.lua

local reply, ids, names, is_told = { @NODES_FOUND }, {}, {}, {}
local count = outbox and outbox[@LAST_MESSAGE] - outbox[@FIRST_MESSAGE] + 1 or 0
if count > @NODES_BATCH then
  return reply
end
for i = 1, count do
  names[i] = string.format('\2%.0f', outbox[@FIRST_MESSAGE] + i - 1)
end
for _, message in ipairs(count > 0 and redis.call('HMGET', KEYS[@STATE], unpack(names)) or {}) do
  if message then
    is_told[cmsgpack.unpack(message)[@MESSAGE_MARK]] = true
  end
end
for i = 1, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
for first = 1, #ids, @CHUNK do
  local found = redis.call('HMGET', KEYS[@STATE], unpack(ids, first, math.min(first + @CHUNK_REST, #ids)))
  for j, task in ipairs(found) do
    local i = (first + j - 1) * 2
    if not task and not is_told[ARGV[i]] then
      reply[#reply + 1] = first + j - 2
    end
  end
end
return reply
