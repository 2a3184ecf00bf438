-- Shared: claims that are put back because too much is asked of somebody.

-- include keys.lua

-- Nothing more of its key is given out for so long; of a task without one, nothing of the queue.
local function throttle(main, time)
  if main[@KEY] then
    local record = change_key(main[@KEY])
    record[@KEY_UNTIL] = math.max(record[@KEY_UNTIL], now + time)
  else
    limits, limits_change = limits or no_limits(), true
    limits[@HELD_UNTIL] = math.max(limits[@HELD_UNTIL], now + time)
  end
end
