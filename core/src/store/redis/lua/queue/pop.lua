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
-- include die.lua
-- include intake.lua
-- include take_in.lua
-- include end_lease.lua
-- include promote.lua
-- include take.lua
-- include tell.lua

check_live()
check_dead()
redis.call('PERSIST', KEYS[2])
promote()
for _, id in ipairs(take(tonumber(ARGV[1]))) do
  local main = mains[id]
  tell(id, @CLAIMED, cmsgpack.pack(main), redis.call('HGET', KEYS[4], id), 0, -1)
  acked = acked + 1
  main[@SETTLED], main[@VERDICT], main[@RECEIPT] = main[@RECEIPT], @ACK, 0
  succeed(id)
end
write()
write_deaths()
write_counts()
keep_record()
if earlier or redis.call('ZCARD', KEYS[6]) > 0 then
  wake()
end
return reply
