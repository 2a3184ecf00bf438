-- Shared: where tasks with keys are counted: in line, running, or held.

-- include keys.lua
-- include held.lua

-- id -> where it is counted, as far as that changed here; members of HELD that come (true) or go (false), in order.
local places, members, member_list = {}, {}, {}

local function place_of(id)
  if places[id] then
    return places[id]
  end
  if stood[id] == true then
    if redis.call('ZSCORE', KEYS[@CLAIMED], id) then
      stood[id] = @CLAIMED
    elseif redis.call('ZSCORE', KEYS[@READY], id) then
      stood[id] = @READY
    elseif redis.call('ZSCORE', KEYS[@SCHEDULED], id) then
      stood[id] = @SCHEDULED
    else
      stood[id] = false
    end
  end
  return stood[id] or @HELD_TASK
end

local function note_member(member, comes)
  if members[member] == nil then
    member_list[#member_list + 1] = member
  end
  members[member] = comes
end

-- A task with a key that had a place has it no more.
local function leave_key(id)
  local key, place, main = key_of[id], place_of(id), mains[id]
  key_of[id], places[id] = nil, nil
  if place == @SCHEDULED or (place == @CLAIMED and limits[@COUNTS_RUNS] == 0) then
    return
  end
  if place == @READY and is_plain(key) and key_texts[key] == plain_text(main[@PRIORITY]) then
    -- It was the only one.
    key_texts[key] = false
    return note_change(key)
  end
  local record = change_key(key)
  if place == @CLAIMED then
    record[@KEY_RUNNING] = math.max(record[@KEY_RUNNING] - 1, 0)
  elseif place == @HELD_TASK then
    record[@KEY_HELD] = math.max(record[@KEY_HELD] - 1, 0)
    note_member(held_member(id, main), false)
  else
    for i = @KEY_FIXED + 1, #record do
      if record[i] == main[@PRIORITY] then
        record[i] = record[#record]
        record[#record] = nil
        break
      end
    end
    dropped[key] = dropped[key] or is_highest(record, main[@PRIORITY])
  end
end

local function hold(id, task, record)
  note_variety()
  record[@KEY_HELD] = record[@KEY_HELD] + 1
  key_of[id], places[id] = task[@KEY], @HELD_TASK
  note_member(held_member(id, task), true)
  return false
end

-- A task with a key is due: whether it comes into line, and is not held.
local function enter_key(id, task)
  local key = task[@KEY]
  if is_plain(key) and not key_texts[key] then
    -- It is the only one.
    key_texts[key] = plain_text(task[@PRIORITY])
    key_of[id], places[id] = key, @READY
    note_change(key)
    return true
  end
  local record = change_key(key)
  local free, is_above = key_room(key, 0)
  if is_above or record[@KEY_HELD] > 0 then
    -- The others are before it, unless its priority is higher.
    is_above = (is_above or free > 0) and #record > @KEY_FIXED
    free = is_above and is_highest(record, task[@PRIORITY]) and 1 or 0
  end
  if free == 0 then
    return hold(id, task, record)
  end
  record[#record + 1] = task[@PRIORITY]
  key_of[id], places[id] = key, @READY
  return true
end

-- Takes a task from the line to its run, if its key allows that now; otherwise it is held.
local function run_key(id)
  local task = mains[id]
  local key = task[@KEY]
  if limits and limits[@ALIKE] == 1 and are_free() then
    -- It was the only one, and nobody counts what runs.
    key_texts[key], places[id] = false, @CLAIMED
    note_change(key)
    return true
  end
  leave_key(id)
  if is_plain(key) then
    key_of[id], places[id] = key, @CLAIMED
    return true
  end
  local record, terms = key_record(key), key_terms[key]
  local most = terms[@OWN_CONCURRENCY]
  if (most > 0 and record[@KEY_RUNNING] >= most) or free_at(key, 0) > now_us then
    return hold(id, task, record)
  end
  if limits[@COUNTS_RUNS] == 1 then
    record[@KEY_RUNNING] = record[@KEY_RUNNING] + 1
  end
  if terms[@OWN_COUNT] > 0 then
    local gap = pace(terms[@OWN_COUNT], terms[@OWN_PER], terms[@OWN_BURST])
    record[@KEY_TAT] = math.max(record[@KEY_TAT], now_us) + gap
  end
  key_of[id], places[id] = key, @CLAIMED
  return true
end
