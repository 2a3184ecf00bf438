-- Take tasks for good.
-- keys:    the queue's
-- args:    1 at most so many
-- returns: {@TASKS, then per task what tell.lua says} | {@PAUSED}

-- include record.lua

if paused then
  return { @PAUSED }
end

-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include die.lua
-- include take.lua
-- include tell.lua

check_live()
check_dead()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
local popped = {}

local function deliver(id)
  local main = mains[id]
  tell(id, @CLAIMED, cmsgpack.pack(main), redis.call('HGET', KEYS[@BODY], main[@BODY]), 0, -1)
  acked = acked + 1
  if main[@NODE] then
    post(@NODE_DONE, main[@NODE], 0)
  end
  main[@SETTLED], main[@VERDICT], main[@RECEIPT] = main[@RECEIPT], @ACK, 0
  popped[id] = main
  drop_body(main)
  succeed(id)
end

for _, id in ipairs(take_all(tonumber(ARGV[1]), deliver)) do
  happen(@EVENT_DONE, id, popped[id])
end
write_deaths()
keep()
if earlier or message_count > 0 or redis.call('ZCARD', KEYS[@READY]) > 0 then
  wake()
end
send_hints()
return reply
