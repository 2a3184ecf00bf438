-- Change settings.
-- keys:    the queue's
-- args:    each "" to leave it: 1 max_len or "-" for none, 2 dead_max, 3 dead_age ms, 4 dead_bytes, 5 intake 0 or 1,
--          6 how many events are kept, 0 for none, 7 max_running, 8 rate's count, 9 its ms, 10 its burst, 11 concurrency of
--          each key, 12 count of the rate of each, 13 its ms, 14 its burst; 0 for no limit
-- returns: {@SET}

-- include record.lua
-- include settings.lua
-- include check.lua
-- include keep.lua
-- include write_events.lua
-- include hints.lua
-- include wake.lua
-- include limits.lua
-- include rate.lua
-- include count_runs.lua

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
local max_running, rate, key_concurrency, key_rate =
  tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[11]), tonumber(ARGV[12])
if max_running or rate or key_concurrency or key_rate then
  check_keys()
  limits, limits_change = limits or no_limits(), true
  limits[@MAX_RUNNING] = max_running or limits[@MAX_RUNNING]
  if rate then
    limits[@RATE_COUNT], limits[@RATE_PER], limits[@RATE_BURST] = rate, tonumber(ARGV[9]), tonumber(ARGV[10])
    limits[@RATE_TAT] = tat_of(limits[@RATE_TAT], rate, limits[@RATE_PER], limits[@RATE_BURST])
  end
  limits[@KEY_CONCURRENCY] = key_concurrency or limits[@KEY_CONCURRENCY]
  if limits[@KEY_CONCURRENCY] > 0 then
    count_runs()
  end
  if key_rate then
    limits[@KEY_COUNT], limits[@KEY_PER], limits[@KEY_BURST] = key_rate, tonumber(ARGV[13]), tonumber(ARGV[14])
  end
  -- Who waits looks when it may go on now; each key that holds tasks is looked at by the next claims.
  limits[@KEY_SWEEP] = redis.call('ZCARD', KEYS[@HELD]) > 0 and '-'
  write_limits()
  redis.call('PERSIST', KEYS[@QUEUE])
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
if limits then
  wake()
end
send_hints()
return { @SET }
