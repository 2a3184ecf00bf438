-- Shared: who is told by what this script does: callers that wait for the end of a task, or for an event.

-- include record.lua

-- Each as "client seq".
local hinted = {}

local function hint(waiter)
  hinted[#hinted + 1] = waiter
end

-- The last thing that a script does.
local function send_hints()
  for _, waiter in ipairs(hinted) do
    local client, seq = string.match(waiter, '^(%x+) (%d+)$')
    if client then
      -- A user without channel rights fails here: who waits asks by itself later.
      redis.pcall('PUBLISH', '@CHANNELS' .. client, seq)
    end
  end
end
