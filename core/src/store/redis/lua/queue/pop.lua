-- Take tasks for good.
-- keys:    the queue's
-- args:    1 at most so many
-- returns: {@TASKS, then per task what tell.lua says} | {@PAUSED}

-- include record.lua

if paused then
  return { @PAUSED }
end

-- include wake.lua
-- include task.lua
-- include write.lua
-- include check.lua
-- include dead.lua
-- include keep.lua
-- include succeed.lua
-- include die.lua
-- include intake.lua
-- include end_lease.lua
-- include take_in.lua
-- include promote.lua
-- include take.lua
-- include tell.lua

check_live()
check_dead()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[3])
promote()
for _, id in ipairs(take(tonumber(ARGV[1]))) do
  local main = mains[id]
  tell(id, @CLAIMED, cmsgpack.pack(main), redis.call('HGET', KEYS[4], main[@BODY]), 0, -1)
  acked = acked + 1
  main[@SETTLED], main[@VERDICT], main[@RECEIPT] = main[@RECEIPT], @ACK, 0
  drop_body(main)
  succeed(id)
end
write()
write_deaths()
keep()
if earlier or redis.call('ZCARD', KEYS[6]) > 0 then
  wake()
end
return reply
