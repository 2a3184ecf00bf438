-- Add schedules, or change them.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    1 owner or "", 2 generation of its list; then per schedule: id, timing, missed, overlap 0 or 1, paused 0 or 1,
--          options of its tasks, body
-- returns: {@PUT, how many others of the owner's were removed, then per schedule: @ADDED, @REPLACED or @KEPT} |
--          {@OLDER, generation}

-- include record.lua
-- include wake.lua
-- include check.lua
-- include keep.lua
-- include schedule.lua

local owner, generation = ARGV[1], tonumber(ARGV[2])
local list = string.format('\2%s', owner)
check_live()
check_schedules()
local packed_list = owner ~= '' and redis.call('HGET', KEYS[@SCHEDULES], list)
local owned = packed_list and cmsgpack.unpack(packed_list) or { 0 }
if owner ~= '' and owned[1] > generation then
  return { @OLDER, owned[1] }
end

-- Its slots go on as they are, unless they are others.
local function put_schedule(id, timing, missed, overlap, is_paused, options, body)
  local before = schedule_of(id)
  local owned_by = owner ~= '' and owner or before and before[@OWNER] or ''
  local goes_on = before and before[@TIMING] == timing
  if
    goes_on and before[@MISSED] == missed and before[@OVERLAP] == overlap and before[@OWNER] == owned_by
    and before[@TASK_OPTIONS] == options and before[@BODY_SIZE] == #body
    and (body == '' or redis.call('HGET', KEYS[@SCHEDULES], string.format('\1%s', id)) == body)
  then
    return @KEPT
  end
  local schedule = before or { 0, timing, '', 0, is_paused, 0, 0, @NEVER, '', 0, 0, 0, '', '', 0 }
  schedule[@TIMING], schedule[@MISSED], schedule[@OVERLAP] = timing, missed, overlap
  schedule[@OWNER], schedule[@TASK_OPTIONS], schedule[@BODY_SIZE] = owned_by, options, #body
  if not goes_on then
    schedule[@CURSOR], schedule[@FRESH] = now, 1
    schedule[@NEXT] = schedule[@IS_PAUSED] == 1 and @NEVER or now
  end
  set_schedule(id, schedule)
  if body == '' then
    redis.call('HDEL', KEYS[@SCHEDULES], string.format('\1%s', id))
  else
    redis.call('HSET', KEYS[@SCHEDULES], string.format('\1%s', id), body)
  end
  return before and @REPLACED or @ADDED
end

local reply, kept, ids = { @PUT, 0 }, {}, { generation }
for i = 3, #ARGV, 7 do
  reply[#reply + 1] = put_schedule(
    ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), ARGV[i + 5], ARGV[i + 6]
  )
  kept[ARGV[i]], ids[#ids + 1] = true, ARGV[i]
end
if owner ~= '' then
  for i = 2, #owned do
    local before = not kept[owned[i]] and schedule_of(owned[i])
    if before and before[@OWNER] == owner then
      set_schedule(owned[i], false)
      reply[2] = reply[2] + 1
    end
  end
  redis.call('HSET', KEYS[@SCHEDULES], list, cmsgpack.pack(ids))
end
local is_earlier = write_schedules()
keep()
if is_earlier then
  wake()
end
return reply
