-- Drop every task, live, dead or in the intake; idle consumers, counters and settings stay.
-- keys:    the queue's
-- args:    none
-- returns: {@COUNTED, how many}

-- include record.lua
-- include check.lua
-- include intake.lua
-- include dead.lua
-- include keep.lua

check_live()
local count = live + redis.call('ZCARD', KEYS[8]) + redis.call('ZCARD', KEYS[12]) + intake_size
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
redis.call('UNLINK', KEYS[12])
if intake_size > 0 then
  redis.call('UNLINK', KEYS[1])
end
dead_size, expired_size, trim_at, lives_anew = 0, 0, 0, true
keep()
return { @COUNTED, count }
