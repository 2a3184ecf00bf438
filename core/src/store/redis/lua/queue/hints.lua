-- Shared: who is told by what this script does: callers that wait for the end of a task, or for an event.

-- include record.lua

-- Each as "client seq".
local hinted = {}

local function hint(waiter)
  hinted[#hinted + 1] = waiter
end

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
