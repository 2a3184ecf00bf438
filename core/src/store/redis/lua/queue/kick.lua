-- Move dead tasks back to ready, with attempts starting again, unless their ids live.
-- keys:    the queue's
-- args:    1 "i" ids: the newest record of each, "r" receipts, or "o" the oldest, those that failed first; 2 at most so
--          many; 3 what reasons begin with, 4 what ids begin with; 5 died at the latest: "i" so many ms ago, "a" then;
--          6 set after whose place it goes on or 0, 7 score, 8 member; then ids or receipts
-- returns: {@SWEPT, how many, died at the latest ms, the place to go on after: set or 0, score, member}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include sweep.lua
-- include happen.lua

local function revive(dead)
  local id, expires = dead[@ID], dead[@EXPIRES]
  local task = {
    next_number(), now, dead[@PRIORITY], 0, dead[@MAX_ATTEMPTS], now,
    -- It would die again at once.
    expires > now and expires or 0,
    0, dead[@SETTLED], dead[@VERDICT], dead[@REASON], dead[@SIZE], dead[@BODY], 0, 0,
  }
  if dead[@HISTORY] or dead[@KEY] or dead[@NODE] then
    widen(task)
    task[@HISTORY], task[@KEY] = dead[@HISTORY] or false, dead[@KEY] or false
  end
  if dead[@NODE] then
    mark(task, dead[@NODE])
  end
  put(id, task)
  happen(@EVENT_ADDED, id, task)
end

check_live()
check_dead()
local ids, revived = {}, {}
for i, dead in ipairs(wanted) do
  ids[i] = dead[@ID]
end
fetch(ids)
for _, dead in ipairs(wanted) do
  if #revived < most and not dead[@NAMELESS] and not mains[dead[@ID]] then
    revive(dead)
    revived[#revived + 1] = dead
  end
end
if #revived > 0 then
  redis.call('HSET', KEYS[@QUEUE], 'counts', packed_counts())
  write()
  for _, dead in ipairs(revived) do
    drop_dead(dead, true)
  end
  keep()
  wake()
  send_hints()
end
return swept(#revived)
