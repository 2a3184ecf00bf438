-- Shared: what happens to tasks, as far as the queue keeps it. STREAM: number-0 -> the packed event, of which the last ones
-- are kept.

-- include record.lua
-- include hints.lua

local happened, happened_count = {}, 0

local function happen(what, id, task, reason)
  if watch then
    happened_count = happened_count + 1
    happened[happened_count] = { 0, now, what, id, task[@VERSION], task[@ATTEMPTS], reason or '' }
  end
end

-- Those who wait for an event look for it.
local function hint_watchers()
  for i = @EVENT_WAITERS, #watch, 2 do
    if watch[i + 1] > now then
      hint(watch[i])
    end
  end
end

-- Stores the events, and hints those who wait for one.
local function write_events()
  if happened_count == 0 then
    return
  end
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
