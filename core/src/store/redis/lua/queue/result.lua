-- What became of a task: its result, or to be told when it ends.
-- keys:    the queue's; RESULT, RESULTS
-- args:    1 id, 2 version that it has at least, 3 "client seq" to tell or ""
-- returns: {@RESULT_KEPT, version, bytes} | {@WAITING} | {@BURIED, reason} | {@GONE}

-- include record.lua
-- include intake.lua
-- include write.lua
-- include check.lua
-- include hints.lua
-- include waiters_with.lua

local id, wanted, waiter = ARGV[1], tonumber(ARGV[2]), ARGV[3]
check_live()
check_dead()
local ends = redis.call('ZSCORE', KEYS[@RESULTS], id)
local kept = ends and tonumber(ends) > now and redis.call('HGET', KEYS[@RESULT], id)
if kept then
  local version, bytes = unpack(cmsgpack.unpack(kept))
  if version >= wanted then
    return { @RESULT_KEPT, version, bytes }
  end
end
fetch({ id })
local main = mains[id]
local version = main and (successors[id] or main)[@VERSION]
if main and version >= wanted then
  if waiter ~= '' then
    -- Changes nothing; the first write decides whether a server without memory lets the script write.
    redis.call('PERSIST', KEYS[@STATE])
    widen(main)
    main[@ASKED] = waiters_with(waiter, main[@ASKED] or {}, 1)
    touch(id)
    write()
  end
  return { @WAITING }
end
if intake_size > 0 and redis.call('ZSCORE', KEYS[@INTAKE], id) then
  return { @WAITING }
end
local receipt = redis.call('HGET', KEYS[@GRAVE], string.format('i%s', id))
local dead = receipt and redis.call('HGET', KEYS[@GRAVE], string.format('r%s', receipt))
if dead then
  dead = cmsgpack.unpack(dead)
  if dead[@VERSION] >= wanted then
    return { @BURIED, dead[@REASON] }
  end
end
return { @GONE }
