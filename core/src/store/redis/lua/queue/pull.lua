-- Shared: tasks that are held come into line.

-- include places.lua

-- The first ones of a key come to the end of the line, as far as there is room; `lines` is what the line gets.
local function pull(key, share, lines)
  local record = key_records[key]
  local free, is_above = key_room(key, share)
  if is_above and dropped[key] then
    free = 1
  end
  free = math.min(free, math.max(share, @PULL_MAX), record[@KEY_HELD])
  if free < 1 then
    return
  end
  local low, high = string.format('[%s\1', key), string.format('(%s\2', key)
  local found = redis.call('ZRANGE', KEYS[@HELD], low, high, 'BYLEX', 'LIMIT', 0, free)
  if #found < free then
    record[@KEY_HELD] = #found
  end
  for _, member in ipairs(found) do
    local id, turn = held_task(member)
    local priority = @PRIORITY_MOST - math.floor(turn / 2 ^ @TURN_BITS)
    if (is_above and not is_highest(record, priority)) or free_at(key, #record - @KEY_FIXED) > now_us then
      return
    end
    record[@KEY_HELD] = record[@KEY_HELD] - 1
    record[#record + 1] = priority
    sequence, pulled_count, chance = sequence + 1, pulled_count + 1, true
    lines[#lines + 1], lines[#lines + 2] = (@PRIORITY_MOST - priority) * 2 ^ @TURN_BITS + sequence, id
    note_member(member, false)
    if mains[id] then
      places[id], stood[id] = @READY, @READY
    end
  end
end

local function write_members()
  local come, go = {}, {}
  for _, member in ipairs(member_list) do
    if members[member] then
      come[#come + 1], come[#come + 2] = 0, member
    else
      go[#go + 1] = member
    end
  end
  members, member_list = {}, {}
  for i = 1, #go, @CHUNK do
    redis.call('ZREM', KEYS[@HELD], unpack(go, i, math.min(i + @CHUNK_REST, #go)))
  end
  for i = 1, #come, @CHUNK do
    redis.call('ZADD', KEYS[@HELD], unpack(come, i, math.min(i + @CHUNK_REST, #come)))
  end
end

-- Whether the record says anything; and notes when the key is to be looked at though none of its tasks leaves.
local function says(key, record)
  local terms = key_terms[key]
  record[@KEY_TAT] = tat_of(record[@KEY_TAT], terms[@OWN_COUNT], terms[@OWN_PER], terms[@OWN_BURST])
  local in_line, at, looks = #record - @KEY_FIXED, free_at(key, 0), false
  local is_idle = record[@KEY_HELD] + record[@KEY_RUNNING] + in_line == 0
  if record[@KEY_HELD] > 0 and in_line == 0 and at > now_us then
    looks = math.ceil(at / 1000)
  elseif is_idle and math.max(record[@KEY_TAT], record[@KEY_UNTIL] * 1000) > now_us then
    looks = @FORGET_BASE + math.ceil(math.max(record[@KEY_TAT] / 1000, record[@KEY_UNTIL]))
  end
  if looks then
    redis.call('ZADD', KEYS[@KEY_WAITS], looks, key)
    record[@KEY_WAITING] = 1
  elseif record[@KEY_WAITING] == 1 then
    redis.call('ZREM', KEYS[@KEY_WAITS], key)
    record[@KEY_WAITING] = 0
  end
  return looks or not is_idle
end

-- What is stored of a record that says something.
local function text_of(record)
  if #record == @KEY_FIXED + 1 then
    local others = 0
    for i = 1, @KEY_FIXED do
      others = math.max(others, record[i])
    end
    if others == 0 then
      return plain_text(record[#record])
    end
  end
  note_variety()
  return cmsgpack.pack(record)
end

local function write_records()
  local kept, gone = {}, {}
  local kept_count, gone_count = 0, 0
  for _, key in ipairs(changed_keys) do
    local record, text = key_records[key], key_texts[key]
    if record then
      text = says(key, record) and text_of(record)
    end
    if text then
      kept[kept_count + 1], kept[kept_count + 2] = key, text
      kept_count = kept_count + 2
    else
      gone_count = gone_count + 1
      gone[gone_count] = key
    end
  end
  for i = 1, kept_count, @CHUNK do
    redis.call('HSET', KEYS[@KEY_RECORDS], unpack(kept, i, math.min(i + @CHUNK_REST, kept_count)))
  end
  for i = 1, gone_count, @CHUNK do
    redis.call('HDEL', KEYS[@KEY_RECORDS], unpack(gone, i, math.min(i + @CHUNK_REST, gone_count)))
  end
end

-- Stores what has changed of keys, once the tasks are stored. A claim that wants more than there is in line says how many:
-- they come from all keys alike.
local function write_keys(wanted)
  write_members()
  local share, lines = math.ceil(wanted / changed_count), {}
  for _, key in ipairs(changed_keys) do
    if key_records[key] and key_records[key][@KEY_HELD] > 0 then
      pull(key, share, lines)
    end
  end
  write_members()
  for i = 1, #lines, @CHUNK do
    redis.call('ZADD', KEYS[@READY], unpack(lines, i, math.min(i + @CHUNK_REST, #lines)))
  end
  write_records()
  changed_keys, changed_count, is_changed, dropped = {}, 0, {}, {}
end
