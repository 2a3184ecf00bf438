-- Shared: stores the messages that have come in.

-- include outbox.lua
-- include write_outbox.lua

local function write_messages()
  open_outbox()
  local last = outbox[@LAST_MESSAGE]
  if outbox[@FIRST_MESSAGE] > last then
    -- The first one.
    last = math.max(last, now_us - 1)
    outbox[@FIRST_MESSAGE] = last + 1
  end
  outbox[@LAST_MESSAGE] = last + message_count
  local heads, results_told = {}, {}
  for i, message in ipairs(messages) do
    local name, result = string.format('\2%.0f', last + i), message[4]
    message[4] = result and #result
    heads[i * 2 - 1], heads[i * 2] = name, cmsgpack.pack(message)
    if result then
      results_told[#results_told + 1], results_told[#results_told + 2] = name, result
    end
  end
  for i = 1, #heads, @CHUNK do
    redis.call('HSET', KEYS[@STATE], unpack(heads, i, math.min(i + @CHUNK_REST, #heads)))
  end
  for i = 1, #results_told, @CHUNK do
    redis.call('HSET', KEYS[@BODY], unpack(results_told, i, math.min(i + @CHUNK_REST, #results_told)))
  end
  write_outbox()
end
