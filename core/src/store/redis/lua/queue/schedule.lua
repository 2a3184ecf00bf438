-- Shared: the schedules that a script touches, and when the first one of the queue is due.

-- include record.lua

-- The schedules as they are to be stored, by id; false if one is removed.
local schedules, touched_schedules = {}, {}

local function schedule_of(id)
  if schedules[id] == nil then
    local packed_schedule = redis.call('HGET', KEYS[@SCHEDULES], id)
    schedules[id] = packed_schedule and cmsgpack.unpack(packed_schedule)
  end
  return schedules[id]
end

local function set_schedule(id, schedule)
  if schedule then
    schedule[@SERIAL] = next_number()
  end
  schedules[id] = schedule
  touched_schedules[#touched_schedules + 1] = id
end

-- The first one's due and how many there are, which claims and stats read in the queue's record. Whether the first is
-- due earlier than before.
local function write_agenda()
  local first = redis.call('ZRANGE', KEYS[@AGENDA], 0, 0, 'WITHSCORES')
  local due, before = tonumber(first[2]), agenda_due
  local count = redis.call('ZCARD', KEYS[@AGENDA])
  if not due then
    agenda_due, agenda_size, record[3], lives_anew = @NEVER, 0, false, true
    redis.call('HDEL', KEYS[@QUEUE], 'agenda')
  elseif due ~= agenda_due or count ~= agenda_size then
    agenda_due, agenda_size, record[3] = due, count, cmsgpack.pack({ due, count })
    redis.call('HSET', KEYS[@QUEUE], 'agenda', record[3])
  end
  if due then
    redis.call('PERSIST', KEYS[@QUEUE])
  end
  return (due or @NEVER) < before
end

-- Stores them; whether one is due earlier than all before.
local function write_schedules()
  for _, id in ipairs(touched_schedules) do
    local schedule = schedules[id]
    if schedule then
      redis.call('HSET', KEYS[@SCHEDULES], id, cmsgpack.pack(schedule))
      redis.call('ZADD', KEYS[@AGENDA], schedule[@NEXT], id)
    else
      redis.call('HDEL', KEYS[@SCHEDULES], id, string.format('\1%s', id))
      redis.call('ZREM', KEYS[@AGENDA], id)
    end
  end
  touched_schedules = {}
  return write_agenda()
end

-- A key of another type fails here, before the first write.
local function check_schedules()
  redis.call('HLEN', KEYS[@SCHEDULES])
  redis.call('ZCARD', KEYS[@AGENDA])
end
