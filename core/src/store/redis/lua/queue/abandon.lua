-- A claim that nobody waits for: what it was given goes back, a late copy of it gets nothing, and a hint that
-- its waiter was given passes on.
-- keys:    the queue's; CALL, if there is one
-- args:    1 number of the call or "", 2 "client seq consumer" of the waiter or ""
-- returns: {@LEFT}

-- include record.lua
-- include call.lua
-- include wake.lua
-- include write.lua
-- include check.lua
-- include keep.lua
-- include end_delivery.lua
-- include due.lua

-- What is still under the lease that the call was given.
local function put_back(given)
  local ids = {}
  for i = 1, #given, 2 do
    ids[#ids + 1] = given[i]
  end
  fetch(ids)
  for i = 1, #given, 2 do
    local id = given[i]
    local main, ends = mains[id], tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0)
    if main and main[@RECEIPT] == given[i + 1] and ends > now then
      stood[id] = @CLAIMED
      end_delivery(id, @PUT_BACK, 0)
    end
  end
end

check_live()
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('PERSIST', KEYS[@STATE])
local before = number and last == number and stored_reply()
if before then
  put_back(before[1])
  write()
end
if number and last <= number then
  remember(false, 0)
end
local waits = ARGV[2] == '' or redis.call('ZREM', KEYS[@IDLE], ARGV[2]) == 1
keep()
if chance or message_count > 0 or (not waits and next_due() == 0) then
  wake(ARGV[2])
end
send_hints()
return { @LEFT }
