-- Drop every task, live, dead or in the intake, and every flow with all messages; idle consumers, counters and settings stay.
-- keys:    the queue's; RESULT, RESULTS, FLOWS, FLOW_NODES, FLOW_TIMES
-- args:    none
-- returns: {@COUNTED, how many}

-- include record.lua
-- include check.lua
-- include intake.lua
-- include keep.lua
-- include check_flows.lua

check_live()
local count = live + redis.call('ZCARD', KEYS[@DEAD]) + redis.call('ZCARD', KEYS[@EXPIRED]) + intake_size
check_dead()
check_keys()
redis.call('ZCARD', KEYS[@WINDOW])
redis.call('HLEN', KEYS[@RESULT])
redis.call('ZCARD', KEYS[@RESULTS])
check_flows()
redis.call('UNLINK', KEYS[@STATE])
redis.call('UNLINK', KEYS[@BODY])
redis.call('UNLINK', KEYS[@SCHEDULED])
redis.call('UNLINK', KEYS[@READY])
redis.call('UNLINK', KEYS[@CLAIMED])
redis.call('UNLINK', KEYS[@DEAD])
redis.call('UNLINK', KEYS[@GRAVE])
redis.call('UNLINK', KEYS[@WINDOW])
redis.call('UNLINK', KEYS[@EXPIRED])
redis.call('UNLINK', KEYS[@HELD])
redis.call('UNLINK', KEYS[@KEY_RECORDS])
redis.call('UNLINK', KEYS[@KEY_WAITS])
redis.call('UNLINK', KEYS[@RESULT])
redis.call('UNLINK', KEYS[@RESULTS])
redis.call('UNLINK', KEYS[@FLOWS])
redis.call('UNLINK', KEYS[@FLOW_NODES])
redis.call('UNLINK', KEYS[@FLOW_TIMES])
if outbox then
  -- include write_outbox.lua
  outbox[@FIRST_MESSAGE], outbox[@LIVE_FLOWS] = outbox[@LAST_MESSAGE] + 1, 0
  write_outbox()
end
if intake_size > 0 then
  redis.call('UNLINK', KEYS[@INTAKE])
end
dead_size, expired_size, trim_at, lives_anew = 0, 0, 0, true
keep()
return { @COUNTED, count }
