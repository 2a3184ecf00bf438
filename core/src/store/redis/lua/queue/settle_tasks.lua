-- Shared: settlements.

-- include end_delivery.lua
-- include results.lua
-- include write.lua

-- The dead record with this receipt, if there is one.
local function dead_of(receipt)
  if dead_now[receipt] then
    return dead_now[receipt]
  end
  local packed_dead = redis.call('HGET', KEYS[@GRAVE], string.format('r%.0f', receipt))
  return packed_dead and cmsgpack.unpack(packed_dead)
end

-- Whether this verdict ended a delivery whose task is dead; true if the record goes with it.
local function settle_dead(dead, verdict, delay, reason)
  if dead[@VERDICT] == @LEASE_END and dead[@SETTLED] == dead[@RECEIPT] then
    if verdict ~= @ACK then
      return @STALE
    end
    acked = acked + 1
    happen(@EVENT_DONE, dead[@ID], dead)
    if dead[@NODE] then
      post(@NODE_DONE, dead[@NODE], 0, reason)
    end
    if delay > 0 then
      keep_result(dead[@ID], dead[@VERSION], delay, reason)
    end
    -- include dead.lua
    drop_dead(dead)
    return @DONE_LATE
  end
  local same = dead[@SETTLED] == dead[@RECEIPT] and dead[@VERDICT] == verdict
  return same and @DONE_DEAD or @STALE
end

local function settle(id, receipt, verdict, delay, reason, ends)
  local main = mains[id]
  if main and main[@RECEIPT] == receipt and receipt > 0 then
    local late = not ends or tonumber(ends) <= now
    -- If it was asked for again since, this is not its result.
    if verdict == @ACK and delay > 0 and main[@VERSION] < receipt then
      keep_result(id, main[@VERSION], delay, reason)
    end
    if end_delivery(id, verdict, delay, reason) then
      return late and @DONE_LATE_DEAD or @DONE_DEAD
    end
    return late and @DONE_LATE or @DONE
  end
  if main and main[@SETTLED] == receipt then
    return main[@VERDICT] == verdict and @DONE or @STALE
  end
  local dead = dead_of(receipt)
  if dead and dead[@ID] == id then
    return settle_dead(dead, verdict, delay, reason)
  end
  return main and @STALE or @GONE
end

-- A verdict with its delay and reason: the letter is that of an ack, perhaps with how long its result is kept and that, of a
-- nack with its delay and reason, of a bury with its reason, of a put_back with its delay, or of a throttle with its time.
local function verdict_of(text)
  if text == 'a' then
    return @ACK, 0, false
  end
  local time, rest = string.match(text, '^a(%d+) ()')
  if time then
    return @ACK, tonumber(time), string.sub(text, rest)
  end
  local letter = string.sub(text, 1, 1)
  if letter == 'p' then
    return @PUT_BACK, tonumber(string.sub(text, 2)) or 0, ''
  elseif letter == 't' then
    return @THROTTLE, tonumber(string.sub(text, 2)) or 0, ''
  elseif letter == 'b' then
    return @BURY, 0, string.sub(text, 2)
  end
  local delay, reason = string.match(text, '^n(%d+) (.*)$')
  return @NACK, tonumber(delay), reason
end

local function settle_all(first_item, reply)
  local ids, count, has_results = {}, 0, false
  for i = first_item, #ARGV, 3 do
    count = count + 1
    ids[count] = ARGV[i]
    has_results = has_results or ARGV[i + 2] ~= 'a' and string.sub(ARGV[i + 2], 1, 1) == 'a'
  end
  if has_results then
    -- Fails here if they are of another type, and not after a write.
    redis.call('HLEN', KEYS[@RESULT])
    redis.call('ZCARD', KEYS[@RESULTS])
  end
  fetch(ids)
  local ends = {}
  for first = 1, #ids, @CHUNK do
    local found = redis.call('ZMSCORE', KEYS[@CLAIMED], unpack(ids, first, math.min(first + @CHUNK_REST, #ids)))
    for i, score in ipairs(found) do
      local id = ids[first + i - 1]
      ends[id] = score
      if score and mains[id] then
        stood[id] = @CLAIMED
      end
    end
  end
  local length = #reply
  for i = first_item, #ARGV, 3 do
    local id, receipt = ARGV[i], tonumber(ARGV[i + 1])
    local verdict, delay, reason = verdict_of(ARGV[i + 2])
    length = length + 1
    reply[length] = settle(id, receipt, verdict, delay, reason, ends[id])
  end
  write()
  if result_count > 0 then
    -- include write_results.lua
    write_results()
  end
end
