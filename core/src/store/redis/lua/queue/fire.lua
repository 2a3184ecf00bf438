-- Give the slots of schedules their tasks: each schedule moves on, if nobody has moved it before.
-- keys:    the queue's; AGENDA, SCHEDULES
-- args:    per schedule: id, its version, cursor ms, due ms of its next slot, how many slots were missed, flag of the overlap,
--          how many tasks; then per task: id, due ms
-- returns: {@OUTCOMES, then per schedule: @FIRED, @STALE or @ABSENT, how many slots got a task (@ADDED, @KEPT or what else an
--          enqueue does: @REPLACED, @SUCCESSOR, @SKIPPED), how many were skipped (also for @FULL)}

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

-- Gives the slots from ARGV[i] on their tasks; how many got one, and how many none.
local function add_tasks(id, schedule, i, count, overlap)
  local body = schedule[@BODY_SIZE] > 0 and redis.call('HGET', KEYS[@SCHEDULES], string.format('\1%s', id)) or ''
  local tasks, skipped = 0, 0
  for _ = 1, count do
    local task, due = ARGV[i], ARGV[i + 1]
    if (overlap and runs(schedule[@LAST_TASK])) or not add(task, due, schedule[@TASK_OPTIONS], body) then
      skipped = skipped + 1
    else
      tasks, schedule[@LAST_TASK] = tasks + 1, task
    end
    i = i + 2
  end
  return tasks, skipped
end

local reply, i = { @OUTCOMES }, 1
for _ = 1, #ARGV do
  if i > #ARGV then
    break
  end
  local id, version, cursor, due = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local missed, overlap, count = tonumber(ARGV[i + 4]), ARGV[i + 5] == '1', tonumber(ARGV[i + 6])
  local schedule = schedule_of(id)
  local outcome, tasks, skipped = @FIRED, 0, 0
  if not schedule then
    outcome = @ABSENT
  elseif schedule[@SERIAL] ~= version then
    outcome = @STALE
  else
    tasks, skipped = add_tasks(id, schedule, i + 7, count, overlap)
    schedule[@CURSOR], schedule[@FRESH], schedule[@NEXT] = cursor, 0, due
    schedule[@TASKS_MADE], schedule[@SLOTS_SKIPPED] = schedule[@TASKS_MADE] + tasks, schedule[@SLOTS_SKIPPED] + skipped
    schedule[@SLOTS_MISSED] = schedule[@SLOTS_MISSED] + missed
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
if chance or message_count > 0 then
  wake()
end
send_hints()
return reply
