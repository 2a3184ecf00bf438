-- Shared: keys that may go on.

-- include pull.lua

-- Looks whether more of a key may come into line. If `alone`, no task of any key is in line or running, whatever its record
-- says: a library that knows no keys has settled some.
local function visit_key(key, alone)
  local record = change_key(key)
  if alone then
    -- It holds some, or nobody would look; how many shows when there are fewer than are asked for.
    local held = record[@KEY_HELD] > 0 and record[@KEY_HELD] or redis.call('ZCARD', KEYS[@HELD])
    key_records[key] = { 0, held, record[@KEY_TAT], record[@KEY_UNTIL], record[@KEY_WAITING] }
  end
end

-- After a change of limits, each key that holds tasks, @KEY_LOOK at a time.
local function sweep_keys()
  local alone = redis.call('ZCARD', KEYS[@READY]) + redis.call('ZCARD', KEYS[@CLAIMED]) == 0
  limits_change = true
  for _ = 1, @KEY_LOOK do
    local found = redis.call('ZRANGE', KEYS[@HELD], limits[@KEY_SWEEP], '+', 'BYLEX', 'LIMIT', 0, 1)
    if #found == 0 then
      limits[@KEY_SWEEP] = false
      return
    end
    local key = string.match(found[1], '^[^\1]*')
    visit_key(key, alone)
    limits[@KEY_SWEEP] = string.format('(%s\2', key)
  end
end

-- Those whose time has come.
local function promote_keys()
  local due = redis.call('ZRANGE', KEYS[@KEY_WAITS], '-inf', now, 'BYSCORE', 'LIMIT', 0, @KEY_LOOK)
  local forgotten =
    redis.call('ZRANGE', KEYS[@KEY_WAITS], @FORGET_BASE, @FORGET_BASE + now, 'BYSCORE', 'LIMIT', 0, @KEY_LOOK)
  for _, key in ipairs(forgotten) do
    due[#due + 1] = key
  end
  for _, key in ipairs(due) do
    with_keys[#with_keys + 1] = key
  end
  for _, key in ipairs(due) do
    visit_key(key, false)
  end
  if limits[@KEY_SWEEP] then
    sweep_keys()
  end
end

-- Tasks are held though none is in line and none runs: a library that knows no keys has settled what ran. And if nothing is
-- known of any key, they are all alike again.
local function heal_keys()
  if limits[@ALIKE] ~= 1 and redis.call('HLEN', KEYS[@KEY_RECORDS]) == 0 then
    limits[@ALIKE], limits_change = 1, true
  end
  if limits[@KEY_SWEEP] or redis.call('ZCARD', KEYS[@HELD]) == 0 then
    return
  end
  local others = redis.call('ZCARD', KEYS[@READY]) + redis.call('ZCARD', KEYS[@CLAIMED])
    + redis.call('ZCOUNT', KEYS[@KEY_WAITS], '-inf', '(@FORGET_BASE')
  if others == 0 then
    limits[@KEY_SWEEP], limits_change = '-', true
  end
end
