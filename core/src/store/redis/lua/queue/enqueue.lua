-- Put tasks in, in order, each as if alone.
-- keys:    the queue's; CALL
-- args:    1 number of the call, 2 ms for which a repetition of it may come; then per task: id, options or "" if all
--          are default, body
-- returns: {@OUTCOMES, then per task: its outcome (@ADDED, @KEPT, @REPLACED, @SUCCESSOR, @THROTTLED, @SKIPPED or @FULL),
--          its version, its due ms} | {@SUPERSEDED}

-- include record.lua
-- include call.lua

if last > number then
  return { @SUPERSEDED }
elseif last == number then
  return stored_reply() or { @SUPERSEDED }
end

-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include end_lease.lua

check_live()
-- include enqueue_task.lua

local ids, count = {}, 0
for i = 3, #ARGV, 3 do
  count = count + 1
  ids[count] = ARGV[i]
  local key = ARGV[i + 1] ~= '' and spec_of(ARGV[i + 1]).key
  if key and key ~= '' then
    with_keys[#with_keys + 1] = key
  end
end
if max_len and live + count > max_len then
  make_room()
end
fetch(ids)

-- id -> end of its throttle window, as far as it matters here
local windows, opened = {}, {}
local reply, length = { @OUTCOMES }, 1
for i = 3, #ARGV, 3 do
  local id, spec = ARGV[i], spec_of(ARGV[i + 1])
  local throttled = spec.policy == 't'
  if throttled and not windows[id] then
    windows[id] = tonumber(redis.call('ZSCORE', KEYS[@WINDOW], id) or 0)
  end
  local outcome, task
  if throttled and windows[id] > now then
    outcome = @THROTTLED
  else
    outcome, task = enqueue(id, spec, ARGV[i + 2])
  end
  if task and outcome ~= @SKIPPED then
    enqueued = enqueued + 1
    if throttled then
      windows[id] = now + spec.span
      opened[#opened + 1] = windows[id]
      opened[#opened + 1] = id
    end
  end
  reply[length + 1], reply[length + 2], reply[length + 3] =
    outcome, task and task[@VERSION] or 0, task and task[@DUE] or 0
  length = length + 3
end

remember(reply, tonumber(ARGV[2]))
local changed = touched_count
write()
write_deaths()
keep(changed > 0 and #deaths == 0)
if #opened > 0 then
  for i = 1, #opened, @CHUNK do
    redis.call('ZADD', KEYS[@WINDOW], unpack(opened, i, math.min(i + @CHUNK_REST, #opened)))
  end
  local old = redis.call('ZRANGE', KEYS[@WINDOW], '-inf', now, 'BYSCORE', 'LIMIT', 0, @CHUNK)
  if #old > 0 then
    redis.call('ZREM', KEYS[@WINDOW], unpack(old))
  end
  local latest = redis.call('ZREVRANGE', KEYS[@WINDOW], 0, 0, 'WITHSCORES')
  redis.call('PEXPIRE', KEYS[@WINDOW], tonumber(latest[2] or now) - now)
end
if chance or message_count > 0 then
  wake()
end
send_hints()
return reply
