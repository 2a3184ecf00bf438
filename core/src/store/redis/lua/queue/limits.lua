-- Shared: what the queue lets go and run at most, and the limits that keys have of their own.
-- ZSET KEY_LIMITS: key, \1, concurrency, rate: count, per ms, burst (0: as the queue has it), weight; all of one score.

-- include record.lua

local function no_limits()
  local none = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 1 }
  return none
end

-- The member of KEY_LIMITS of a key, if it has any of its own.
local function own_member(key)
  return redis.call(
    'ZRANGE', KEYS[@KEY_LIMITS], string.format('[%s\1', key), string.format('(%s\2', key), 'BYLEX', 'LIMIT', 0, 1
  )[1]
end

-- Whether no key has limits.
local function are_free()
  return limits[@KEY_CONCURRENCY] + limits[@KEY_COUNT] + limits[@OWN_SET] + limits[@COUNTS_RUNS] == 0
end

-- Notes that a key has more than one task in line, or less.
local function note_variety()
  if limits[@ALIKE] == 1 then
    limits[@ALIKE], limits_change = 0, true
  end
end
