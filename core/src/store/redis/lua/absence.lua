-- Shared: what is known about a lock whose key does not hold the caller's token.
local function absence(value)
  local meta = redis.call('HMGET', KEYS[@META], 'fence', 'born', 'broken')
  local foreign = value and not (#value == @TOKEN_LENGTH and string.find(value, '^@TOKEN_BEGINS%d+$'))
  return { @GONE, tonumber(meta[1]) or 0, tonumber(meta[2]) or 0, tonumber(meta[3]) or 0, foreign and 1 or 0 }
end
