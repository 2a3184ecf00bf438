-- Who holds the lock? Reads only.
-- keys:    LOCK, META, LINE
-- args:    none
-- returns: {@FREE} | {@HELD, held as, fence, remaining ms or -1, since s, owner, waiters}
local value = redis.call('GET', KEYS[@LOCK])
if not value then
  return { @FREE }
end

local remaining = redis.call('PTTL', KEYS[@LOCK])
local meta = redis.call('HMGET', KEYS[@META], 'fence', 'since', 'owner')
local fence, since, owner = tonumber(meta[1]) or 0, 0, ''
local held_as = @AS_FOREIGN
if value == '@COOLDOWN_MARKER' then
  held_as = @AS_COOLDOWN
elseif redis.call('ZSCORE', KEYS[@LINE], value) then
  held_as = @AS_OFFER
elseif #value == @TOKEN_LENGTH and string.find(value, '^@TOKEN_BEGINS%d+$') then
  held_as, since, owner = @AS_LEASE, tonumber(meta[2]) or 0, meta[3] or ''
end
return { @HELD, held_as, fence, remaining, since, owner, redis.call('ZCARD', KEYS[@LINE]) }
