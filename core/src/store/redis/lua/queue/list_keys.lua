-- Keys: those that hold tasks, then those that have limits of their own and hold none. Reads only.
-- keys:    the queue's
-- args:    1 at most so many, 2 part after whose key it begins: 0, @PART_HELD or @PART_LIMITED, 3 that key or "";
--          or 1 "", 2 the one key
-- returns: {@KEY_PAGE, part after which the next page begins or 0, key; then per key: key, tasks that run, in line, held, ms
--          until more may come into line or -1, its own limits or ""}

-- include record.lua
-- include limits.lua
-- include use_keys.lua

local reply, told = { @KEY_PAGE, 0, '' }, 0
-- Key -> how many of its tasks run, where that is not counted: of the first @LIST_LOOK claims.
local running

local function count_running()
  running = {}
  local ids = redis.call('ZRANGE', KEYS[@CLAIMED], 0, @LIST_LOOK - 1)
  local found = #ids > 0 and redis.call('HMGET', KEYS[@STATE], unpack(ids)) or {}
  for _, text in ipairs(found) do
    local key = text and cmsgpack.unpack(text)[@KEY]
    if key then
      running[key] = (running[key] or 0) + 1
    end
  end
end

local function runs_of(key)
  local counted = key_record(key)[@KEY_RUNNING]
  if limits[@COUNTS_RUNS] == 1 then
    return counted
  end
  if not running then
    count_running()
  end
  return running[key] or 0
end

local function tell_key(key)
  local length = #reply
  told = told + 1
  reply[length + 1] = key
  local record, at, own = key_record(key), free_at(key, 0), own_member(key)
  reply[length + 2], reply[length + 3], reply[length + 4] =
    runs_of(key), #record - @KEY_FIXED, record[@KEY_HELD]
  reply[length + 5] = at > now_us and math.ceil((at - now_us) / 1000) or -1
  reply[length + 6] = own and string.sub(own, #key + 2) or ''
end

-- Whether the key after this one is told, or passed by; false if there is none, or no more room.
local function next_key(part, from)
  local low, found = from == '' and '-' or string.format('(%s\2', from), nil
  if part == @PART_HELD then
    found = redis.call('ZRANGE', KEYS[@HELD], low, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  else
    found = redis.call('ZRANGE', KEYS[@KEY_LIMITS], low, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  end
  local key = found and string.match(found, '^[^\1]*')
  if key and (part == @PART_HELD or key_record(key)[@KEY_HELD] == 0) then
    tell_key(key)
  end
  return key
end

use_keys()
if ARGV[1] == '' then
  tell_key(ARGV[2])
  return reply
end
local most, part, from = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
for looked = 1, @KEY_LOOK * 2 do
  if told == most or looked == @KEY_LOOK * 2 then
    reply[2], reply[3] = part, from
    return reply
  end
  local key = next_key(part == @PART_LIMITED and part or @PART_HELD, from)
  if key then
    part, from = part == @PART_LIMITED and part or @PART_HELD, key
  elseif part == @PART_LIMITED then
    return reply
  else
    part, from = @PART_LIMITED, ''
  end
end
return reply
