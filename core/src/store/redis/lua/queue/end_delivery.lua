-- Shared: how the delivery of a task ends. Needs die.lua.

-- Ends the delivery that is not settled yet; whether the task is dead.
local function end_delivery(id, verdict, delay, reason)
  local main = mains[id]
  local receipt = main[@RECEIPT]
  main[@SETTLED], main[@VERDICT], main[@RECEIPT] = receipt, verdict, 0
  if verdict == @ACK then
    acked = acked + 1
    succeed(id)
    return false
  end
  if verdict == @NACK then
    retried = retried + 1
  elseif verdict == @PUT_BACK then
    main[@ATTEMPTS] = main[@ATTEMPTS] - 1
  end
  if verdict == @BURY or (verdict == @NACK and main[@ATTEMPTS] >= main[@MAX_ATTEMPTS]) then
    die(id, reason, receipt)
    return true
  end
  if verdict == @NACK then
    main[@DUE], main[@REASON] = now + delay, reason
  end
  if is_replaced(id) then
    succeed(id)
  else
    put(id, main)
  end
  return false
end
