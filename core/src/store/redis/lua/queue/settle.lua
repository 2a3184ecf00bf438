-- Say how claims ended.
-- keys:    the queue's; RESULT, RESULTS if a verdict has a result
-- args:    per settlement: id, receipt, verdict: "a" ack, perhaps with ms for which its result is kept, a
--          space and that, "n" with delay ms, a space and reason: nack, "b" with
--          reason: bury, "p" with delay ms: put_back, "t" with ms for which its key or the queue is held: throttle
-- returns: {@OUTCOMES, then per settlement: @DONE, @DONE_LATE, @DONE_DEAD, @DONE_LATE_DEAD, @STALE or @GONE}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include settle_tasks.lua

check_live()
check_dead()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
local reply = { @OUTCOMES }
settle_all(1, reply)
write_deaths()
keep()
if chance or message_count > 0 then
  wake()
end
send_hints()
return reply
