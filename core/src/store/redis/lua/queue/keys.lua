-- Shared: what is known of keys. Of a key, so many tasks are in line as its weight says, and no more are in line and running
-- than its concurrency allows; the others are held, in the order of their turns, and come into line when one of them leaves.
-- So a claim never looks at a task that may not run, and each key has its share of the line.
-- HASH KEY_RECORDS: key -> packed record (KEY_FIELDS). ZSET KEY_WAITS: key -> ms when more of it may come into line; of one
-- that has no tasks, @FORGET_BASE + ms when its record says nothing any more.

-- include task.lua
-- include rate.lua
-- include limits.lua

-- Key -> its record as it is stored (false if it has none), or as it is changed here; and what it is allowed (OWN_FIELDS).
local key_texts, key_records, key_terms = {}, {}, {}
-- Those that have changed, in the order in which they did.
local changed_keys, is_changed = {}, {}
-- Keys of which a task of the highest priority has left the line.
local dropped = {}
-- What most keys are allowed; and what is stored of one that has a task of this priority in line, and nothing else: the number
-- alone, as where each task has its own key there are as many of these as tasks.
local plain_terms, plain_texts = nil, {}

local function plain_text(priority)
  plain_texts[priority] = plain_texts[priority] or cmsgpack.pack(priority)
  return plain_texts[priority]
end

local function terms_of(key)
  local own = limits[@OWN_SET] > 0 and own_member(key)
  if not own and plain_terms then
    return plain_terms
  end
  local concurrency, count, per, burst, weight =
    string.match(own and string.sub(own, #key + 2) or '0 0 0 0 1', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local terms = { tonumber(concurrency), tonumber(count), tonumber(per), tonumber(burst), tonumber(weight) }
  if terms[@OWN_CONCURRENCY] == 0 then
    terms[@OWN_CONCURRENCY] = limits[@KEY_CONCURRENCY]
  end
  if terms[@OWN_COUNT] == 0 then
    terms[@OWN_COUNT], terms[@OWN_PER], terms[@OWN_BURST] = limits[@KEY_COUNT], limits[@KEY_PER], limits[@KEY_BURST]
  end
  if not own then
    plain_terms = terms
  end
  return terms
end

-- The record of a key as it is stored, which comes together with those of all tasks that were fetched.
local function key_text(key)
  if key_texts[key] ~= nil then
    return key_texts[key]
  end
  if not limits then
    -- Keys of another type fail here, before the first write.
    redis.call('ZCARD', KEYS[@HELD])
    redis.call('ZCARD', KEYS[@KEY_WAITS])
    limits, limits_change = no_limits(), true
  end
  local wanted, count, is_wanted = { key }, 1, { [key] = true }
  for _, other in ipairs(with_keys) do
    if key_texts[other] == nil and not is_wanted[other] and count < @CHUNK then
      count = count + 1
      wanted[count], is_wanted[other] = other, true
    end
  end
  with_keys = {}
  local found = redis.call('HMGET', KEYS[@KEY_RECORDS], unpack(wanted))
  for i = 1, count do
    key_texts[wanted[i]] = found[i]
  end
  return key_texts[key]
end

local function key_record(key)
  local record = key_records[key]
  if not record then
    local text = key_text(key)
    record = text and cmsgpack.unpack(text) or { 0, 0, 0, 0, 0 }
    if type(record) == 'number' then
      record = { 0, 0, 0, 0, 0, record }
    end
    key_records[key], key_terms[key] = record, terms_of(key)
  end
  return record
end

-- Whether nothing is known of a key but what its stored record says, and no key has limits.
local function is_plain(key)
  return key_text(key) ~= nil and not key_records[key] and are_free()
end

local function note_change(key)
  if not is_changed[key] then
    changed_count = changed_count + 1
    is_changed[key], changed_keys[changed_count] = true, key
  end
end

local function change_key(key)
  note_change(key)
  return key_record(key)
end

-- When the next one may come into line behind `before`, us; 0 if time is nothing to it.
local function free_at(key, before)
  local record, terms = key_record(key), key_terms[key]
  local at = record[@KEY_UNTIL] * 1000
  if terms[@OWN_COUNT] > 0 then
    local gap, slack = pace(terms[@OWN_COUNT], terms[@OWN_PER], terms[@OWN_BURST])
    local tat = before > 0 and math.max(record[@KEY_TAT], now_us) or record[@KEY_TAT]
    at = math.max(at, tat + before * gap - slack)
  end
  return at
end

-- How many more may come into line, whatever their priority; if none, whether one may that is of a higher priority than all
-- that are in line.
local function key_room(key, share)
  local record, terms = key_record(key), key_terms[key]
  local running, in_line, most = record[@KEY_RUNNING], #record - @KEY_FIXED, terms[@OWN_CONCURRENCY]
  if (most > 0 and running >= most) or free_at(key, in_line) > now_us then
    return 0, false
  end
  local free = math.max(terms[@OWN_WEIGHT], share) - in_line
  if most > 0 then
    free = math.min(free, most - running - in_line)
  end
  return math.max(free, 0), free <= 0
end

-- Whether a priority is higher than that of all in line.
local function is_highest(record, priority)
  for i = @KEY_FIXED + 1, #record do
    if record[i] >= priority then
      return false
    end
  end
  return true
end
