-- Say how claims ended, and take tasks, in one step.
-- keys:    the queue's; CALL; RESULT, RESULTS if a verdict has a result
-- args:    as claim: 1 number of the call, 2 at most so many, 3 lease ms, 4 "client seq consumer" to register or "", 5 consumer;
--          then per settlement as settle: id, receipt, verdict
-- returns: {@OUTCOMES, how many, as many outcomes as settle gives: @DONE, @DONE_LATE, @DONE_DEAD, @DONE_LATE_DEAD,
--          @STALE or @GONE; then what claim gives: @SCHEDULES_DUE, @FLOWS_DUE, @GIVEN, @EMPTY or @PAUSED...} | {@SUPERSEDED}

-- include record.lua
-- include call.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include die.lua
-- include claim_tasks.lua
-- include settle_tasks.lua

local before = last == number and stored_reply()
if last > number or (last == number and not before) then
  return { @SUPERSEDED }
end
check_live()
check_dead()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])

local outcomes, tasks, given = {}, {}, {}
if before then
  outcomes = before[2]
  -- include give_again.lua
  give_again(before[1], tasks)
else
  settle_all(6, outcomes)
  if not paused then
    claim_tasks(tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5], tasks, given)
  end
end
write_deaths()
if not before then
  remember({ given, outcomes }, #given > 0 and tonumber(ARGV[3]) or 0)
end
local reply = { @OUTCOMES, #outcomes }
for _, outcome in ipairs(outcomes) do
  reply[#reply + 1] = outcome
end
keep()
if agenda_due <= now then
  reply[#reply + 1] = @SCHEDULES_DUE
end
if outbox then
  -- include flows_due.lua
  if are_flows_due(#tasks > 0) then
    reply[#reply + 1] = @FLOWS_DUE
  end
end
if #tasks == 0 then
  give_nothing(reply, ARGV[4])
  if earlier and ARGV[4] == '' then
    wake('')
  end
  send_hints()
  return reply
end
local length = #reply + 1
reply[length] = @GIVEN
for i, field in ipairs(tasks) do
  reply[length + i] = field
end
if ARGV[4] ~= '' then
  redis.call('ZREM', KEYS[@IDLE], ARGV[4])
end
if message_count > 0 or (not before and is_left()) then
  wake(ARGV[4])
end
send_hints()
return reply
