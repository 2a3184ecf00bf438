-- Drop dead tasks.
-- keys:    the queue's
-- args:    1 "i" ids: the newest record of each, "r" receipts, or "o" the oldest, those that failed first; 2 at most so
--          many; 3 what reasons begin with, 4 what ids begin with; 5 died at the latest: "i" so many ms ago, "a" then;
--          6 set after whose place it goes on or 0, 7 score, 8 member; then ids or receipts
-- returns: {@SWEPT, how many, died at the latest ms, the place to go on after: set or 0, score, member}

-- include record.lua
-- include check.lua
-- include keep.lua
-- include sweep.lua

check_live()
check_dead()
local removed = math.min(#wanted, most)
if removed > 0 then
  -- Changes nothing; the first write decides whether a server without memory lets the script write.
  redis.call('PERSIST', KEYS[@STATE])
  for i = 1, removed do
    drop_dead(wanted[i])
  end
  trim_at, lives_anew = 1, true
  keep()
end
return swept(removed)
