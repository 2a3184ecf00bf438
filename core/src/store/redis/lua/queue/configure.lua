-- Change settings.
-- keys:    the queue's
-- args:    each "" to leave it: 1 max_len or "-" for none, 2 dead_max, 3 dead_age ms, 4 dead_bytes, 5 intake 0 or 1,
--          6 how many events are kept, 0 for none
-- returns: {@SET}

-- include record.lua
-- include settings.lua
-- include check.lua
-- include keep.lua
-- include happen.lua
-- include hints.lua

if ARGV[1] == '-' then
  max_len = false
end
max_len = tonumber(ARGV[1]) or max_len
dead_max = tonumber(ARGV[2]) or dead_max
dead_age = tonumber(ARGV[3]) or dead_age
dead_bytes = tonumber(ARGV[4]) or dead_bytes
intake = tonumber(ARGV[5]) or intake
check_dead()
local events = tonumber(ARGV[6])
if events then
  -- Fails here if it is of another type, and not after a write. Users without events need no right for it.
  redis.call('XLEN', KEYS[@EVENTS])
end
write_settings()
if events == 0 and watch then
  -- Those that come when it is on again have larger numbers, although there may have been more events than versions.
  counter = math.max(counter, watch[@LAST_EVENT])
  hint_watchers()
  watch = false
  redis.call('HDEL', KEYS[@QUEUE], 'events')
  redis.call('UNLINK', KEYS[@EVENTS])
elseif events and events > 0 then
  if not watch then
    -- What is left of others has other numbers.
    redis.call('UNLINK', KEYS[@EVENTS])
  end
  watch = watch or { 0, next_number() }
  watch[@EVENTS_KEPT] = events
  redis.call('HSET', KEYS[@QUEUE], 'events', cmsgpack.pack(watch))
  redis.call('PERSIST', KEYS[@QUEUE])
end
-- Lower caps hold at once, as far as one call may drop.
trim_at = 1
keep()
send_hints()
return { @SET }
