-- Shared: what the end of a lease does to a task. Needs die.lua.

-- A lease has ended: another try, or none.
local function end_lease(id)
  local main = mains[id]
  retried = retried + 1
  if main[@ATTEMPTS] >= main[@MAX_ATTEMPTS] then
    main[@SETTLED], main[@VERDICT] = main[@RECEIPT], @LEASE_END
    die(id, '@LEASE_ENDED', main[@RECEIPT])
  elseif is_replaced(id) then
    supplant(id)
  else
    main[@REASON] = '@LEASE_ENDED'
    put(id, main)
  end
end
