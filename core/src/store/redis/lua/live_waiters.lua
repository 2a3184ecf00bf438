-- Shared: those who wait and still poll, in the order of the line. It looks at a bounded number.
local function live_waiters(owner_pattern, weight_pattern)
  local time = redis.call('TIME')
  local now_us = time[1] * 1000000 + time[2]
  local live_since = math.floor(now_us / 1000) - @LIVE
  local reply = { @IN_LINE }
  for first = 0, 9 * @WAITERS_MAX, @WAITERS_MAX do
    local line = redis.call('ZRANGE', KEYS[@LINE], first, first + @WAITERS_MAX - 1, 'WITHSCORES')
    local tokens = {}
    for i = 1, #line, 2 do
      tokens[#tokens + 1] = line[i]
    end
    if #tokens == 0 then
      break
    end
    for i, entry in ipairs(redis.call('HMGET', KEYS[@WAITERS], unpack(tokens))) do
      local polled = string.match(entry or '', '^(%d+) ')
      if polled and tonumber(polled) > live_since and #reply <= @WAITERS_MAX then
        local arrival = tonumber(line[2 * i])
        local weight = weight_pattern and tonumber(string.match(entry, weight_pattern)) or 1
        local waiting = math.max(now_us - arrival, 0)
        reply[#reply + 1] = { arrival, waiting, string.match(entry, owner_pattern) or '', weight }
      end
    end
  end
  return reply
end
