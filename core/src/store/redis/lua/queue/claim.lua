-- Take tasks under a lease, or wait for some.
-- keys:    the queue's; CALL
-- args:    1 number of the call, 2 at most so many, 3 lease ms, 4 "client seq consumer" to register or "", 5 consumer
-- returns: {@SCHEDULES_DUE if some are, @FLOWS_DUE if somebody is to look after flows, then
--          @GIVEN, then per task: id, packed, body, ms left; or
--          @EMPTY, us until the next due or -1, rank, wall ms of the slot that is that, or -1; or
--          @PAUSED, rank} | {@SUPERSEDED}

-- include record.lua
-- include call.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include die.lua
-- include claim_tasks.lua

if last > number then
  return { @SUPERSEDED }
end
check_live()
check_dead()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])

local reply, given = { @GIVEN }, {}
if agenda_due <= now then
  reply = { @SCHEDULES_DUE, @GIVEN }
end
local none = #reply
local before, waiter = last == number and stored_reply(), ARGV[4]
if before then
  -- include give_again.lua
  give_again(before[1], reply)
elseif last == number then
  -- It was given up: nobody waits for what it says.
  waiter = ''
elseif not paused then
  claim_tasks(tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5], reply, given)
end
write_deaths()
if last ~= number then
  remember({ given }, #given > 0 and tonumber(ARGV[3]) or 0)
end
keep()
if outbox then
  -- include flows_due.lua
  if are_flows_due(#reply > none) then
    for i = #reply, none, -1 do
      reply[i + 1] = reply[i]
    end
    reply[none] = @FLOWS_DUE
    none = none + 1
  end
end
if #reply == none then
  -- What there will be is the caller's, if it waits: it is told when.
  reply[none] = nil
  give_nothing(reply, waiter)
  if earlier and ARGV[4] == '' then
    wake('')
  end
  send_hints()
  return reply
end
if waiter ~= '' then
  redis.call('ZREM', KEYS[@IDLE], waiter)
end
if message_count > 0 or (not before and is_left()) then
  wake(waiter)
end
send_hints()
return reply
