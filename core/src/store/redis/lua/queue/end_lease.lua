-- Shared: what the end of a lease does to a task. Needs die.lua.

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
