-- The tasks of one state, a page at a time. Reads only.
-- keys:    the queue's
-- args:    1 state, 2 how many to pass over, 3 at most so many
-- returns: {@TASKS, where the next page begins or -1, then per task what tell.lua says}

-- include record.lua
-- include intake.lua
-- include tell.lua
-- include tell_many.lua

local state, skip, max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if state == @READY then
  tell_due(skip, max)
elseif state == @SCHEDULED then
  tell_members(redis.call('ZRANGE', KEYS[5], now + 1, '+inf', 'BYSCORE', 'LIMIT', skip, max, 'WITHSCORES'), state)
  if intake_size > 0 then
    local later = math.max(skip - redis.call('ZCOUNT', KEYS[5], now + 1, '+inf'), 0)
    local first = redis.call('ZCOUNT', KEYS[1], '-inf', now / 1000) + later
    if seen < max then
      tell_entries(redis.call('ZRANGE', KEYS[1], first, first + max - seen - 1, 'WITHSCORES'))
    end
  end
elseif state == @CLAIMED then
  tell_members(redis.call('ZRANGE', KEYS[7], now + 1, '+inf', 'BYSCORE', 'LIMIT', skip, max, 'WITHSCORES'), state)
else
  -- What failed first, then what expired.
  tell_buried(redis.call('ZRANGE', KEYS[8], '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', skip, max))
  local later = math.max(skip - redis.call('ZCARD', KEYS[8]), 0)
  tell_buried(redis.call('ZRANGE', KEYS[12], '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', later, max - seen))
end
local page = { @TASKS, (is_full or seen == max) and skip + seen or -1 }
for i = 2, #reply do
  page[i + 1] = reply[i]
end
return page
