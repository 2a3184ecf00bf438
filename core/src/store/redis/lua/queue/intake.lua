-- Shared: the queue's own key, a ZSET of ids and Unix times in seconds that any program may fill.

-- include record.lua

-- Read first, so that a key of another type fails before anything is written.
local intake_size = intake ~= 0 and redis.call('ZCARD', KEYS[@INTAKE]) or 0

local function intake_due(score)
  return math.min(math.max(math.ceil(tonumber(score) * 1000), 0), 2 ^ @NUMBER_BITS)
end
