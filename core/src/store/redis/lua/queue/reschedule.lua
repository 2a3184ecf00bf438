-- Give a waiting task another due time.
-- keys:    the queue's
-- args:    1 id, 2 "i" in how many ms, or "a" at what time
-- returns: {@MOVED, due ms} | {@ABSENT} | {@RUNNING} | {@BURIED}

-- include record.lua
-- include wake.lua
-- include task.lua
-- include write.lua
-- include check.lua
-- include die.lua
-- include end_lease.lua
-- include intake.lua

local id, due = ARGV[1], tonumber(string.sub(ARGV[2], 2))
if string.sub(ARGV[2], 1, 1) == 'i' then
  due = now + due
end
check_live()
check_dead()
fetch({ id })
local entry = not mains[id] and intake_size > 0 and redis.call('ZSCORE', KEYS[1], id)
if not mains[id] and not entry then
  local dead = redis.call('HEXISTS', KEYS[9], string.format('i%s', id)) == 1
  return { dead and @BURIED or @ABSENT }
end
local ends = tonumber(redis.call('ZSCORE', KEYS[7], id) or nil)
if ends and ends > now then
  return { @RUNNING }
end

redis.call('PERSIST', KEYS[2])
local is_dead = false
if entry then
  redis.call('ZADD', KEYS[1], due / 1000, id)
  chance = true
else
  if ends then
    -- First what the end of the lease means: the task may have died of it.
    stood[id] = @CLAIMED
    end_lease(id)
  end
  is_dead = not mains[id]
  if not is_dead then
    mains[id][@DUE] = due
    put(id, mains[id])
  end
  write()
  write_deaths()
  write_counts()
end
keep_record()
if chance then
  wake()
end
if is_dead then
  return { @BURIED }
end
return { @MOVED, due }
