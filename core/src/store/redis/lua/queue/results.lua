-- Shared: the results that tasks leave behind, one of each id: HASH id -> packed version and bytes, and the bytes of all
-- under no id; ZSET id -> ms of its end. Of too many, those that end first go.

-- include record.lua

local results, result_ends, result_count = {}, {}, 0

local function keep_result(id, version, time, bytes)
  results[result_count + 1], results[result_count + 2] = id, cmsgpack.pack({ version, bytes })
  result_ends[result_count + 1], result_ends[result_count + 2] = now + time, id
  result_count = result_count + 2
end

-- Drops what has ended, and what is too much, at most @DEAD_TRIM; how many bytes are left of `size`.
local function trim_results(size)
  local over = redis.call('ZCARD', KEYS[@RESULTS]) - @RESULTS_MAX
  local first = redis.call('ZRANGE', KEYS[@RESULTS], 0, @DEAD_TRIM - 1, 'WITHSCORES')
  for i = 1, #first, 2 do
    if tonumber(first[i + 1]) > now and over <= 0 and size <= @RESULTS_BYTES then
      break
    end
    size = size - redis.call('HSTRLEN', KEYS[@RESULT], first[i])
    redis.call('HDEL', KEYS[@RESULT], first[i])
    redis.call('ZREM', KEYS[@RESULTS], first[i])
    over = over - 1
  end
  return math.max(size, 0)
end

local function write_results()
  if result_count == 0 then
    return
  end
  local size = tonumber(redis.call('HGET', KEYS[@RESULT], '') or 0)
  for i = 1, result_count, 2 do
    size = size - redis.call('HSTRLEN', KEYS[@RESULT], results[i]) + #results[i + 1]
    redis.call('HSET', KEYS[@RESULT], results[i], results[i + 1])
    redis.call('ZADD', KEYS[@RESULTS], result_ends[i], results[i])
  end
  size = trim_results(size)
  redis.call('HSET', KEYS[@RESULT], '', string.format('%.0f', size))
  -- Nothing that has an end outlives it.
  local last = redis.call('ZRANGE', KEYS[@RESULTS], -1, -1, 'WITHSCORES')
  local left = math.max((tonumber(last[2]) or now) - now, 0) + 1000
  redis.call('PEXPIRE', KEYS[@RESULT], left)
  redis.call('PEXPIRE', KEYS[@RESULTS], left)
end
