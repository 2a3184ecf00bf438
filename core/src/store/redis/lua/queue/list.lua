-- The tasks of one state, a page at a time. Reads only.
-- keys:    the queue's
-- args:    1 state, 2 at most so many, 3 whether with bodies 0 or 1, 4 what ids begin with, 5 set after whose place the
--          page begins or 0, 6 score, 7 member
-- returns: {@TASKS, the next page's place: set or 0, score, member; then per task what tell.lua says}

-- include record.lua
-- include walk.lua

local state = tonumber(ARGV[1])
most, has_bodies, prefix = tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
from_set, from_score, from_member = tonumber(ARGV[5]), ARGV[6], ARGV[7]
if state == @READY then
  walk_due()
elseif state == @SCHEDULED then
  walk(@PART_SCHEDULED, count(@PART_SCHEDULED, '-inf', now), redis.call('ZCARD', KEYS[@SCHEDULED]) - 1, state)
  if intake_size > 0 then
    walk(@PART_INTAKE, count(@PART_INTAKE, '-inf', now / 1000), intake_size - 1, state)
  end
elseif state == @CLAIMED then
  walk(@PART_CLAIMED, count(@PART_CLAIMED, '-inf', now), redis.call('ZCARD', KEYS[@CLAIMED]) - 1, state)
elseif state == @HELD_TASK then
  walk(@PART_HELD, 0, redis.call('ZCARD', KEYS[@HELD]) - 1, state)
else
  -- What failed first, then what expired.
  walk_back(@PART_FAILED)
  walk_back(@PART_EXPIRED)
end
local page = { @TASKS, is_full and at_set or 0, at_score, at_member }
for i = 2, #reply do
  page[i + 3] = reply[i]
end
return page
