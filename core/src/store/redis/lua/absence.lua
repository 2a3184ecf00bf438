-- Shared: what is known about a lock whose key does not hold the caller's token.
local function absence(value)
  local meta = redis.call('HMGET', KEYS[2], 'fence', 'born', 'broken')
  local foreign = value and not (#value == 55 and string.find(value, '^9999999999999999%d+$'))
  return { @GONE, tonumber(meta[1]) or 0, tonumber(meta[2]) or 0, tonumber(meta[3]) or 0, foreign and 1 or 0 }
end
