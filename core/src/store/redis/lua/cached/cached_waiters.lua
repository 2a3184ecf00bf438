-- Shared by the scripts of cached values: those who wait for one leave the line and are told to ask again.

-- The first of the line with their entries, a bounded number. Those who ask again wake the next.
local function first_waiters()
  local tokens = redis.call('ZRANGE', KEYS[@LINE], 0, @LINE_LAST)
  if #tokens == 0 then
    return tokens, {}
  end
  return tokens, redis.call('HMGET', KEYS[@WAITERS], unpack(tokens))
end
