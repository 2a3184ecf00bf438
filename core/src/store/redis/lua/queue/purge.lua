-- Drop every task, live, dead or in the intake; idle consumers, counters and settings stay.
-- keys:    the queue's
-- args:    none
-- returns: {@COUNTED, how many}

-- include record.lua
-- include check.lua
-- include intake.lua

local count = check_live() + redis.call('ZCARD', KEYS[8]) + intake_size
check_dead()
redis.call('ZCARD', KEYS[10])
redis.call('UNLINK', KEYS[3])
redis.call('UNLINK', KEYS[4])
redis.call('UNLINK', KEYS[5])
redis.call('UNLINK', KEYS[6])
redis.call('UNLINK', KEYS[7])
redis.call('UNLINK', KEYS[8])
redis.call('UNLINK', KEYS[9])
redis.call('UNLINK', KEYS[10])
if intake_size > 0 then
  redis.call('UNLINK', KEYS[1])
end
dead_size = 0
write_counts()
keep_record()
return { @COUNTED, count }
