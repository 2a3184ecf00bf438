-- Shared: what time has done: leases that have ended, tasks that became due, entries of the intake. At most
-- @PROMOTE_MAX in all. Needs take_in.lua and write.lua.

-- A lease has ended: another try, or none.
local function end_lease(id)
  local main = mains[id]
  retried = retried + 1
  if main[@ATTEMPTS] >= main[@MAX_ATTEMPTS] then
    local settled, verdict = main[@SETTLED], main[@VERDICT]
    main[@SETTLED], main[@VERDICT] = main[@RECEIPT], @LEASE_END
    die(id, '@LEASE_ENDED', main[@RECEIPT])
    if mains[id] then
      -- The end of a lease settles nothing: a late ack still finds the dead record.
      mains[id][@SETTLED], mains[id][@VERDICT] = settled, verdict
    end
  elseif is_replaced(id) then
    supplant(id)
  else
    main[@REASON] = '@LEASE_ENDED'
    put(id, main)
  end
end

-- A member of a set without a task: somebody deleted the state. It goes.
local function forget(id)
  stands[id] = false
  touch(id)
end

local function promote()
  local ended = redis.call('ZRANGE', KEYS[7], '-inf', now, 'BYSCORE', 'LIMIT', 0, @PROMOTE_MAX)
  fetch(ended)
  for _, id in ipairs(ended) do
    stood[id] = @CLAIMED
    if mains[id] then
      end_lease(id)
    else
      forget(id)
    end
  end
  local due = redis.call('ZRANGE', KEYS[5], '-inf', now, 'BYSCORE', 'LIMIT', 0, @PROMOTE_MAX - #ended)
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
  write()
end
