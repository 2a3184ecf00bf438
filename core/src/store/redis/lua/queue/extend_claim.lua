-- Prolong the lease of a claim; never shortens it.
-- keys:    the queue's
-- args:    1 id, 2 receipt, 3 lease ms
-- returns: {@EXTENDED, ms left} | {@EXPIRED} | {@STALE} | {@GONE}
local packed = redis.call('HGET', KEYS[@STATE], ARGV[1])
if not packed then
  return { @GONE }
end
local receipt = cmsgpack.unpack(packed)[@RECEIPT]
if receipt == 0 or receipt ~= tonumber(ARGV[2]) then
  return { @STALE }
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], ARGV[1]) or 0)
if ends <= now then
  return { @EXPIRED }
end
local later = now + ARGV[3]
if later > ends then
  -- Changes nothing; the first write decides whether a server without memory lets the script write.
  redis.call('PERSIST', KEYS[@CLAIMED])
  redis.call('ZADD', KEYS[@CLAIMED], later, ARGV[1])
  ends = later
end
return { @EXTENDED, ends - now }
