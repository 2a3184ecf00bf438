-- Shared: stores what has happened, and hints those who wait for that.

-- include happen.lua
-- include hints.lua

-- Those who wait for an event look for it.
local function hint_watchers()
  for i = @EVENT_WAITERS, #watch, 2 do
    if watch[i + 1] > now then
      hint(watch[i])
    end
  end
end

local function write_events()
  if has_strangers then
    -- It takes no smaller one any more. What is dropped is told as a gap.
    redis.call('UNLINK', KEYS[@EVENTS])
    has_strangers = false
  end
  for _, event in ipairs(happened) do
    watch[@LAST_EVENT] = watch[@LAST_EVENT] + 1
    event[1] = watch[@LAST_EVENT]
    redis.call(
      'XADD', KEYS[@EVENTS], 'MAXLEN', '~', watch[@EVENTS_KEPT], string.format('%.0f-0', event[1]),
      'e', cmsgpack.pack(event)
    )
  end
  redis.call('PEXPIRE', KEYS[@EVENTS], @QUEUE_TTL)
  hint_watchers()
  watch = { watch[@EVENTS_KEPT], watch[@LAST_EVENT] }
  redis.call('HSET', KEYS[@QUEUE], 'events', cmsgpack.pack(watch))
  happened, happened_count = {}, 0
end
