-- Give the slots of schedules their tasks: each schedule moves on, if nobody has moved it before.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    per schedule: id, its version, cursor ms, due ms of its next slot, how many slots were missed, overlap 0 or 1, how
--          many tasks; then per task: id, due ms
-- returns: {@OUTCOMES, then per schedule: @FIRED, @STALE or @ABSENT, how many tasks, how many slots were skipped}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include end_lease.lua
-- include schedule.lua

check_live()
check_schedules()
check_dead()
-- include enqueue_task.lua

-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])

-- Whether the slot gets its task.
local function add(id, due, options, body)
  fetch({ id })
  local outcome = enqueue(id, spec_of(string.format('a%s %s', due, options)), body)
  if outcome == @FULL then
    return false
  end
  enqueued = enqueued + 1
  return true
end

-- Whether the task of the slot before is in the way.
local function runs(last_task)
  if last_task == '' then
    return false
  end
  fetch({ last_task })
  return find(last_task) and true
end

local reply, i = { @OUTCOMES }, 1
while i <= #ARGV do
  local id, overlap, count = ARGV[i], ARGV[i + 5], tonumber(ARGV[i + 6])
  local schedule = schedule_of(id)
  local outcome, tasks, skipped = @FIRED, 0, 0
  if not schedule then
    outcome = @ABSENT
  elseif schedule[@SERIAL] ~= tonumber(ARGV[i + 1]) then
    outcome = @STALE
  else
    local body = schedule[@BODY_SIZE] > 0 and redis.call('HGET', KEYS[@SCHEDULES], string.format('\1%s', id)) or ''
    for at = i + 7, i + 5 + 2 * count, 2 do
      local task = ARGV[at]
      if (overlap == '1' and runs(schedule[@LAST_TASK])) or not add(task, ARGV[at + 1], schedule[@TASK_OPTIONS], body) then
        skipped = skipped + 1
      else
        tasks, schedule[@LAST_TASK] = tasks + 1, task
      end
    end
    schedule[@CURSOR], schedule[@FRESH], schedule[@NEXT] = tonumber(ARGV[i + 2]), 0, tonumber(ARGV[i + 3])
    schedule[@TASKS_MADE], schedule[@SLOTS_SKIPPED] = schedule[@TASKS_MADE] + tasks, schedule[@SLOTS_SKIPPED] + skipped
    schedule[@SLOTS_MISSED] = schedule[@SLOTS_MISSED] + tonumber(ARGV[i + 4])
    set_schedule(id, schedule)
  end
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = outcome, tasks, skipped
  i = i + 7 + 2 * count
end
local changed = touched_count
write()
write_deaths()
write_schedules()
keep(changed > 0 and #deaths == 0)
if chance then
  wake()
end
return reply
