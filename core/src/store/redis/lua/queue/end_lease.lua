-- Shared: what the end of a lease does to a task.

-- include die.lua
-- include check.lua

-- A lease ended then: another try, or none.
local function end_lease(id, ended)
  local main = mains[id]
  if main[@CANCELLED] then
    end_cancelled(id)
    return
  end
  add_failure(main, ended, '@LEASE_ENDED')
  if main[@ATTEMPTS] >= main[@MAX_ATTEMPTS] then
    local settled, verdict = main[@SETTLED], main[@VERDICT]
    main[@SETTLED], main[@VERDICT] = main[@RECEIPT], @LEASE_END
    die(id, '@LEASE_ENDED', main[@RECEIPT])
    if mains[id] then
      -- The end of a lease settles nothing: a late ack still finds the dead record.
      mains[id][@SETTLED], mains[id][@VERDICT] = settled, verdict
    end
    return
  end
  retried = retried + 1
  happen(@EVENT_FAILED, id, main, '@LEASE_ENDED')
  if is_replaced(id) then
    supplant(id)
  else
    main[@REASON], main[@FIRST] = '@LEASE_ENDED', ended
    put(id, main)
  end
end

-- Main as an enqueue finds it, and whether it is running. A lease that has ended is over, whether somebody has
-- noticed before or not.
local function find(id)
  local main = mains[id]
  if not main or main[@RECEIPT] == 0 then
    return main, false
  end
  -- What this script has placed is not under a lease.
  local ends = stands[numbers[id] or 0] == nil and tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0) or 0
  if ends > now then
    return main, true
  end
  if ends > 0 then
    check_dead()
    end_lease(id, ends)
  end
  return mains[id], false
end
