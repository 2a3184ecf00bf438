-- Shared: how the delivery of a task ends.

-- include die.lua

-- Ends the delivery that is not settled yet; whether the task is dead. The reason of an ack is its result, if it has one. What is put back without a delay comes
-- back to its place in line.
local function end_delivery(id, verdict, delay, reason)
  local main = mains[id]
  local receipt, place = main[@RECEIPT], nil
  main[@SETTLED], main[@VERDICT], main[@RECEIPT] = receipt, verdict, 0
  if verdict == @THROTTLE then
    use_keys()
    throttle(main, delay)
    verdict, delay = @PUT_BACK, 0
  end
  if verdict == @ACK then
    acked = acked + 1
    happen(@EVENT_DONE, id, main)
    if main[@VERSION] > receipt then
      -- Late, and it was asked for again since: that is yet to be done.
      main[@ATTEMPTS], main[@REASON] = 0, ''
      if main[@HISTORY] then
        main[@HISTORY] = false
      end
      put(id, main, true)
    else
      if main[@NODE] then
        post(@NODE_DONE, main[@NODE], 0, reason)
      end
      drop_body(main)
      succeed(id)
    end
    return false
  end
  if main[@CANCELLED] then
    end_cancelled(id)
    return false
  end
  if verdict ~= @PUT_BACK then
    add_failure(main, now, reason)
  end
  if verdict == @BURY or (verdict == @NACK and main[@ATTEMPTS] >= main[@MAX_ATTEMPTS]) then
    die(id, reason, receipt)
    return true
  end
  if verdict == @NACK then
    retried = retried + 1
    happen(@EVENT_FAILED, id, main, reason)
    -- A failure begins a new burst of debounces.
    main[@REASON], main[@FIRST] = reason, now
  elseif verdict == @PUT_BACK then
    happen(@EVENT_PUT_BACK, id, main)
    main[@ATTEMPTS] = main[@ATTEMPTS] - 1
  end
  if verdict == @PUT_BACK and delay == 0 then
    -- If its lease has ended it may wait already.
    place = stood[id] ~= @CLAIMED or main[@TURN] ~= 0 and main[@TURN] or nil
  else
    main[@DUE], main[@BACKOFF] = now + delay, now + delay
  end
  if is_replaced(id) then
    supplant(id, place)
  else
    put(id, main, place)
  end
  return false
end
