-- Shared: the last fields of a task, which few have.

-- Makes room up to the last of what few tasks have, without a gap before it.
local function widen(task, last)
  for place = @BACKOFF, last or @ASKED do
    if task[place] == nil then
      task[place] = false
    end
  end
end

-- Notes which node of which flow a task is, without a gap before it.
local function mark(task, node)
  widen(task)
  task[@NODE] = node
end
