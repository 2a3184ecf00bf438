-- Shared: what the record says of the outbox and of flows.

-- include record.lua

-- A queue has none until there is something to say. Numbers of messages go on behind those that there were.
local function open_outbox()
  outbox = outbox or { counter + 1, counter, 0, 0, 0, 0 }
end

-- Without messages, and flows that live, there is nothing to say any more.
local function write_outbox()
  if outbox[@LIVE_FLOWS] == 0 and outbox[@LAST_MESSAGE] < outbox[@FIRST_MESSAGE] then
    counter, lives_anew = math.max(counter, outbox[@LAST_MESSAGE]), true
    outbox = false
    redis.call('HDEL', KEYS[@QUEUE], 'flows')
    return
  end
  redis.call('HSET', KEYS[@QUEUE], 'flows', cmsgpack.pack(outbox))
  if outbox[@LIVE_FLOWS] > 0 then
    redis.call('PERSIST', KEYS[@QUEUE])
  end
end
