-- Shared: what time has done: leases that have ended, tasks that became due, entries of the intake, at most @PROMOTE_MAX in
-- all; and keys that may go on.

-- include take_in.lua
-- include write.lua

-- A member of a set without a task: somebody deleted the state. It goes.
local function forget(id)
  stands[touch(id)] = false
  live = live - 1
end

local function promote()
  local found = redis.call('ZRANGE', KEYS[@CLAIMED], '-inf', now, 'BYSCORE', 'LIMIT', 0, @PROMOTE_MAX, 'WITHSCORES')
  local ended = {}
  for i = 1, #found, 2 do
    ended[(i + 1) / 2] = found[i]
  end
  fetch(ended)
  for i, id in ipairs(ended) do
    stood[id] = @CLAIMED
    if mains[id] then
      end_lease(id, tonumber(found[i * 2]))
    else
      forget(id)
    end
  end
  local due = redis.call('ZRANGE', KEYS[@SCHEDULED], '-inf', now, 'BYSCORE', 'LIMIT', 0, @PROMOTE_MAX - #ended)
  fetch(due)
  for _, id in ipairs(due) do
    stood[id] = @SCHEDULED
    if mains[id] then
      put(id, mains[id])
    else
      forget(id)
    end
  end
  if #ended + #due < @PROMOTE_MAX then
    take_intake(@PROMOTE_MAX - #ended - #due)
  end
  if limits then
    use_keys()
    promote_keys()
  end
  write()
end
