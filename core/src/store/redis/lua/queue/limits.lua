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
