-- Give a key limits of its own, or take them away.
-- keys:    the queue's
-- args:    1 key; then nothing to take them away, or 2 concurrency, 3 rate's count, 4 its ms, 5 its burst (0: as the queue has
--          it), 6 weight
-- returns: {@SET} | {@FULL}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include limits.lua
-- include count_runs.lua

check_live()
check_keys()
local key, is_set = ARGV[1], #ARGV > 1
limits = limits or no_limits()
local before = own_member(key)
if is_set and not before and limits[@OWN_SET] >= @KEY_LIMITS_MAX then
  return { @FULL }
end
local own = is_set and string.format('%s\1%s %s %s %s %s', key, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
if own then
  redis.call('ZADD', KEYS[@KEY_LIMITS], 0, own)
  limits[@OWN_SET] = limits[@OWN_SET] + 1
  redis.call('PERSIST', KEYS[@QUEUE])
end
if before then
  limits[@OWN_SET] = limits[@OWN_SET] - 1
end
if before and before ~= own then
  redis.call('ZREM', KEYS[@KEY_LIMITS], before)
end
limits_change, lives_anew = true, true
if tonumber(ARGV[2] or 0) > 0 then
  count_runs()
end
use_keys()
change_key(key)
write()
keep()
if chance then
  wake()
end
send_hints()
return { @SET }
