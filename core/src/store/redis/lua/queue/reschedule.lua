-- Give a waiting task another due time.
-- keys:    the queue's
-- args:    1 id, 2 "i" in how many ms, or "a" at what time
-- returns: {@MOVED, due ms} | {@ABSENT} | {@RUNNING} | {@BURIED}

-- include record.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include end_lease.lua
-- include intake.lua

local id, due = ARGV[1], tonumber(string.sub(ARGV[2], 2))
if string.sub(ARGV[2], 1, 1) == 'i' then
  due = now + due
end
check_live()
fetch({ id })
local entry = not mains[id] and intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id)
if not mains[id] and not entry then
  local dead = redis.call('HEXISTS', KEYS[@GRAVE], string.format('i%s', id)) == 1
  return { dead and @BURIED or @ABSENT }
end
local ends = redis.call('ZSCORE', KEYS[@CLAIMED], id)
if tonumber(ends or 0) > now then
  return { @RUNNING }
end
check_dead()

-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
if entry then
  redis.call('ZADD', KEYS[@INTAKE], due / 1000, id)
  chance = true
else
  -- Nobody may have noticed yet that the lease has ended; the task may die of it.
  if ends then
    end_lease(id, tonumber(ends))
  end
  if mains[id] then
    mains[id][@BACKOFF] = mains[id][@BACKOFF] and 0
    move(id, due)
    due = mains[id][@DUE]
  end
  write()
  write_deaths()
end
keep()
if chance or message_count > 0 then
  wake()
end
send_hints()
if not entry and not mains[id] then
  return { @BURIED }
end
return { @MOVED, due }
