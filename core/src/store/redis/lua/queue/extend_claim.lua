-- Prolong the lease of a claim; never shortens it.
-- keys:    the queue's
-- args:    1 id, 2 receipt, 3 lease ms, 4 progress to note, if there is any
-- returns: {@EXTENDED, ms left} | {@EXPIRED} | {@CANCELLED_RUN} | {@STALE} | {@GONE}

-- include record.lua
-- include widen.lua
-- include hints.lua
-- include write_events.lua

local packed = redis.call('HGET', KEYS[@STATE], ARGV[1])
if not packed then
  return { @GONE }
end
local task = cmsgpack.unpack(packed)
local receipt = task[@RECEIPT]
if receipt == 0 or receipt ~= tonumber(ARGV[2]) then
  return { @STALE }
end
local ends = tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], ARGV[1]) or 0)
if ends <= now then
  return { @EXPIRED }
elseif task[@CANCELLED] then
  return { @CANCELLED_RUN }
end
local later = now + ARGV[3]
if later > ends or ARGV[4] then
  -- Changes nothing; the first write decides whether a server without memory lets the script write.
  redis.call('PERSIST', KEYS[@CLAIMED])
  if ARGV[4] then
    widen(task)
    task[@PROGRESS] = ARGV[4]
    redis.call('HSET', KEYS[@STATE], ARGV[1], cmsgpack.pack(task))
    happen(@EVENT_PROGRESS, ARGV[1], task)
    if watch then
      write_events()
    end
  end
  if later > ends then
    redis.call('ZADD', KEYS[@CLAIMED], later, ARGV[1])
    ends = later
  end
end
send_hints()
return { @EXTENDED, ends - now }
