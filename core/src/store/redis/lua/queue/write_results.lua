-- Shared: stores the results that were kept.

-- include results.lua

-- Drops these, if there are any; how many bytes are left of `size`.
local function drop_results(ids, size)
  for _, id in ipairs(ids) do
    size = size - redis.call('HSTRLEN', KEYS[@RESULT], id)
  end
  if #ids > 0 then
    redis.call('HDEL', KEYS[@RESULT], unpack(ids))
    redis.call('ZREM', KEYS[@RESULTS], unpack(ids))
  end
  return size
end

-- Drops what has ended, and what is too much, those that end first: of each at most @DEAD_TRIM more than came, so that there
-- are never more for long. How many bytes are left of `size`.
local function trim_results(size)
  local bound = @DEAD_TRIM + result_count / 2
  size = drop_results(redis.call('ZRANGE', KEYS[@RESULTS], '-inf', now, 'BYSCORE', 'LIMIT', 0, bound), size)
  local over = math.min(redis.call('ZCARD', KEYS[@RESULTS]) - @RESULTS_MAX, bound)
  if over > 0 then
    size = drop_results(redis.call('ZRANGE', KEYS[@RESULTS], 0, over - 1), size)
  end
  if size > @RESULTS_BYTES then
    for _, id in ipairs(redis.call('ZRANGE', KEYS[@RESULTS], 0, bound - 1)) do
      size = drop_results({ id }, size)
      if size <= @RESULTS_BYTES then
        break
      end
    end
  end
  return math.max(size, 0)
end

local function write_results()
  local size, added, came = tonumber(redis.call('HGET', KEYS[@RESULT], '') or 0), 0, 0
  for i = 1, result_count, @CHUNK do
    local last = math.min(i + @CHUNK_REST, result_count)
    added = added + redis.call('ZADD', KEYS[@RESULTS], unpack(result_ends, i, last))
  end
  if size > 0 and added == redis.call('ZCARD', KEYS[@RESULTS]) then
    -- The ends were taken away, by others or for memory: without them nothing of the rest would go.
    redis.call('UNLINK', KEYS[@RESULT])
    size = 0
  end
  for i = 1, result_count, 2 do
    came = came + #results[i + 1]
    if added < result_count / 2 then
      size = size - redis.call('HSTRLEN', KEYS[@RESULT], results[i])
    end
  end
  for i = 1, result_count, @CHUNK do
    redis.call('HSET', KEYS[@RESULT], unpack(results, i, math.min(i + @CHUNK_REST, result_count)))
  end
  size = trim_results(size + came)
  redis.call('HSET', KEYS[@RESULT], '', string.format('%.0f', size))
  -- Nothing that has an end outlives it.
  local last = redis.call('ZRANGE', KEYS[@RESULTS], -1, -1, 'WITHSCORES')
  local left = math.max((tonumber(last[2]) or now) - now, 0) + 1000
  redis.call('PEXPIRE', KEYS[@RESULT], left)
  redis.call('PEXPIRE', KEYS[@RESULTS], left)
end
