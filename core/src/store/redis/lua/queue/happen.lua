-- Shared: what happens to tasks, as far as the queue keeps it. STREAM: number-0 -> the packed event, of which the last ones
-- are kept.

-- include record.lua

local happened, happened_count = {}, 0

local function happen(what, id, task, reason)
  if watch then
    happened_count = happened_count + 1
    happened[happened_count] = { 0, now, what, id, task[@VERSION], task[@ATTEMPTS], reason or '' }
  end
end
