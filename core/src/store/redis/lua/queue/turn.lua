-- Shared: the place of a task in the line.

-- Higher priorities first.
local function turn_of(task)
  return (@PRIORITY_MOST - task[@PRIORITY]) * 2 ^ @TURN_BITS + (task[@TURN] or 0)
end
