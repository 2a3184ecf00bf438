-- Shared: takes ready tasks in their order.

-- include promote.lua
-- include gate.lua

-- How many were taken, and the bytes of their bodies.
local taken_count, taken_size = 0, 0

-- The next ones in line. One that has been held has another turn in line than its record knows; turns cost a twentieth of a
-- claim.
local function next_in_line(first, count)
  if not limits or limits[@ALIKE] == 1 then
    local ids = redis.call('ZRANGE', KEYS[@READY], first, first + count - 1)
    fetch(ids)
    return ids
  end
  local found, ids = redis.call('ZRANGE', KEYS[@READY], first, first + count - 1, 'WITHSCORES'), {}
  for i = 1, #found, 2 do
    ids[(i + 1) / 2] = found[i]
  end
  fetch(ids)
  for i, id in ipairs(ids) do
    if key_of[id] then
      mains[id][@TURN] = found[i * 2] % 2 ^ @TURN_BITS
    end
  end
  return ids
end

-- At most `max` tasks, and @MAX_REPLY_BYTES of bodies in all unless one alone is larger; each under a new receipt. Those that
-- have expired die, and those whose keys do not let them go are held, no more than @EXPIRE_MAX. Whether the line is empty, too.
local function take(max, deliver)
  local taken, count, looked = {}, 0, 0
  for _ = 1, @EXPIRE_MAX do
    local ids = count < max and next_in_line(looked, max - count) or {}
    if #ids == 0 then
      return taken, count < max
    end
    for _, id in ipairs(ids) do
      if looked - count >= @EXPIRE_MAX then
        return taken, false
      end
      local main = mains[id]
      looked = looked + 1
      stood[id] = @READY
      if not main then
        forget(id)
      elseif not expire(id) then
        if taken_size + main[@SIZE] > @MAX_REPLY_BYTES and taken_count > 0 then
          return taken, false
        elseif key_of[id] and not run_key(id) then
          stands[touch(id)] = false
        else
          taken_size, taken_count = taken_size + main[@SIZE], taken_count + 1
          main[@ATTEMPTS], main[@RECEIPT] = main[@ATTEMPTS] + 1, next_number()
          happen(@EVENT_STARTED, id, main)
          count = count + 1
          taken[count] = id
          deliver(id)
        end
      end
    end
  end
  return taken, false
end

-- Up to `max` tasks as far as the queue's limits let them go. `deliver` says where each goes. When nothing
-- is in line any more, keys that hold tasks give more than their share.
local function take_all(max, deliver)
  promote()
  local all = {}
  max = math.min(max, (gate()))
  for _ = 1, max do
    local taken, is_empty = take(max - #all, deliver)
    for _, id in ipairs(taken) do
      all[#all + 1] = id
    end
    local pulled, wanted = pulled_count, is_empty and max - #all or 0
    write(wanted)
    if wanted == 0 or pulled_count == pulled then
      break
    end
  end
  if limits and #all > 0 and limits[@RATE_COUNT] > 0 then
    -- include rate.lua
    local count, per, burst = limits[@RATE_COUNT], limits[@RATE_PER], limits[@RATE_BURST]
    limits[@RATE_TAT] = math.max(tat_of(limits[@RATE_TAT], count, per, burst), now_us) + #all * pace(count, per, burst)
    limits_change = true
  end
  return all
end
