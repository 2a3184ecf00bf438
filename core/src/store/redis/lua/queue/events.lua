-- What happened to tasks of late, or to be told when something does.
-- keys:    the queue's
-- args:    1 number of the event after which, 0 for the oldest that is kept, "" for none of those so far; 2 "client seq" to
--          tell, if there are none, or ""
-- returns: {@EVENTS_FOUND, number of the last of all, then those after that, packed} | {@EVENTS_OFF}

-- include record.lua
-- include waiters_with.lua

if not watch then
  return { @EVENTS_OFF }
end
local after, waiter, last = tonumber(ARGV[1]), ARGV[2], watch[@LAST_EVENT]
if after and after > last then
  -- It was of a record that is gone.
  after = 0
end
local reply = { @EVENTS_FOUND, last }
if after and after < last then
  local found = redis.call('XRANGE', KEYS[@EVENTS], string.format('%.0f-1', after), '+', 'COUNT', @EVENTS_PAGE)
  for i, entry in ipairs(found) do
    reply[i + 2] = entry[2][2]
  end
end
if #reply == 2 and waiter ~= '' then
  -- Changes nothing; the first write decides whether a server without memory lets the script write.
  redis.call('PERSIST', KEYS[@QUEUE])
  local waiting = waiters_with(waiter, watch, @EVENT_WAITERS)
  redis.call('HSET', KEYS[@QUEUE], 'events', cmsgpack.pack({ watch[@EVENTS_KEPT], last, unpack(waiting) }))
end
return reply
