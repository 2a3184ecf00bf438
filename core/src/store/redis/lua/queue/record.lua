-- Shared: the time, the queue's record and settings, and the numbers that it gives out.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local record = redis.call('HMGET', KEYS[@QUEUE], 'counts', 'settings', 'agenda', 'events', 'limits', 'flows')
local counter, sequence, enqueued, acked, retried, died, dead_size, expired_size = 0, 0, 0, 0, 0, 0, 0, 0
-- When the record ends, 0 while tasks live, 1 if there is no record; when one of the dead is to go, 0 if there are
-- none. And whether something happened that may change the first.
local ends_at, trim_at, lives_anew = 1, 0, false
-- How many ids live, as far as check_live was asked.
local live = 0
local function packed_counts()
  return cmsgpack.pack({ counter, sequence, enqueued, acked, retried, died, dead_size, expired_size, ends_at, trim_at })
end

if record[1] then
  counter, sequence, enqueued, acked, retried, died, dead_size, expired_size, ends_at, trim_at =
    unpack(cmsgpack.unpack(record[1]))
else
  -- Nothing has been counted, so nothing has to be stored as long as that is so.
  record[1] = packed_counts()
end
-- Each is false if it is not set.
local paused, max_len, dead_max, dead_age, dead_bytes, intake = false, false, false, false, false, false
if record[2] then
  paused, max_len, dead_max, dead_age, dead_bytes, intake = unpack(cmsgpack.unpack(record[2]))
end

-- When the first schedule is due, and how many there are.
local agenda_due, agenda_size = @NEVER, 0
if record[3] then
  agenda_due, agenda_size = unpack(cmsgpack.unpack(record[3]))
end

-- Of a queue that keeps events: how many, the number of the last one, then each "client seq" that waits for the next and until
-- when.
local watch = record[4] and cmsgpack.unpack(record[4])
-- Whether others have written a larger number into the stream.
local has_strangers = false
if watch then
  -- A key of another type fails here, before the first write.
  local next = string.format('%.0f-1', watch[@LAST_EVENT])
  has_strangers = #redis.call('XRANGE', KEYS[@EVENTS], next, '+', 'COUNT', 1) > 0
end

-- What the queue lets go and run at most (LIMIT_FIELDS, 0 where there is no limit); false if it has no limits, and had no
-- tasks with keys.
local limits, limits_change = record[5] and cmsgpack.unpack(record[5]), false

-- What the outbox has, and how many flows live (OUTBOX_FIELDS); false if the queue has neither.
local outbox = record[6] and cmsgpack.unpack(record[6])

-- Versions and receipts: every one is larger than all before.
local function next_number()
  counter = counter < now_us and now_us or counter + 1
  return counter
end

local function write_counts()
  local counts = packed_counts()
  if counts ~= record[1] then
    redis.call('HSET', KEYS[@QUEUE], 'counts', counts)
    record[1] = counts
  end
end
