-- Shared: callers that wait.

-- include record.lua

-- Those who wait, each with until when, beside one that asks now.
local function waiters_with(waiter, before, first)
  local waiting = { waiter, now + @IDLE_LIVE }
  for i = first, #before, 2 do
    if before[i] ~= waiter and before[i + 1] > now and #waiting < @ASKED_MAX * 2 then
      waiting[#waiting + 1], waiting[#waiting + 2] = before[i], before[i + 1]
    end
  end
  return waiting
end
