-- Put messages into the outbox.
-- keys:    the queue's; FLOWS
-- args:    1 name of the queue whose outbox they are from, or ""; then per message: number there, event, mark, retries, "" or
--          "r" and result
-- returns: {@SET}

-- include record.lua
-- include wake.lua
-- include check.lua
-- include keep.lua
-- include outbox.lua

local source, last = string.format('\4%s', ARGV[1]), 0
check_live()
if ARGV[1] ~= '' then
  last = tonumber(redis.call('HGET', KEYS[@FLOWS], source) or 0)
end
for i = 2, #ARGV, 5 do
  local number, result = tonumber(ARGV[i]), ARGV[i + 4]
  if ARGV[1] == '' or number > last then
    last = number
    post(tonumber(ARGV[i + 1]), ARGV[i + 2], tonumber(ARGV[i + 3]), result ~= '' and string.sub(result, 2))
  end
end
if message_count == 0 then
  return { @SET }
end
-- Changes nothing; the first write decides whether a server without memory lets the script write.
redis.call('HSET', KEYS[@QUEUE], 'counts', packed_counts())
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[@FLOWS], source, string.format('%.0f', last))
  if not (outbox and outbox[@LIVE_FLOWS] > 0) and redis.call('PTTL', KEYS[@FLOWS]) < 0 then
    redis.call('PEXPIRE', KEYS[@FLOWS], @FLOW_AGE)
  end
end
keep()
wake()
send_hints()
return { @SET }
