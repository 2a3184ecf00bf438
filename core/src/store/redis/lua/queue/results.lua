-- Shared: the results that tasks leave behind, one of each id: HASH id -> packed version and bytes, and the bytes of all
-- under no id; ZSET id -> ms of its end. Of too many, those that end first go.

-- include record.lua

-- Id and packed result, end and id, one after another, and where those of an id are.
local results, result_ends, result_count, result_at = {}, {}, 0, {}

local function keep_result(id, version, time, bytes)
  local at = result_at[id]
  if not at then
    at = result_count
    result_at[id], result_count = at, at + 2
  end
  results[at + 1], results[at + 2] = id, cmsgpack.pack({ version, bytes })
  result_ends[at + 1], result_ends[at + 2] = string.format('%.0f', now + time), id
end

-- Drops what has ended, and what is too much: at most @DEAD_TRIM more than came, so that there are never more for long. How
-- many bytes are left of `size`.
local function trim_results(size)
  local over = redis.call('ZCARD', KEYS[@RESULTS]) - @RESULTS_MAX
  -- As many as are too many, and one to see whether there is more to drop.
  local bound = @DEAD_TRIM + result_count / 2
  local most = math.min(math.max(over, 0) + 1, bound)
  local first, gone = redis.call('ZRANGE', KEYS[@RESULTS], 0, most - 1, 'WITHSCORES'), {}
  if size > @RESULTS_BYTES or tonumber(first[most * 2] or now + 1) <= now then
    first = redis.call('ZRANGE', KEYS[@RESULTS], 0, bound - 1, 'WITHSCORES')
  end
  for i = 1, #first, 2 do
    if tonumber(first[i + 1]) > now and over <= 0 and size <= @RESULTS_BYTES then
      break
    end
    size = size - redis.call('HSTRLEN', KEYS[@RESULT], first[i])
    gone[#gone + 1] = first[i]
    over = over - 1
  end
  if #gone > 0 then
    redis.call('HDEL', KEYS[@RESULT], unpack(gone))
    redis.call('ZREM', KEYS[@RESULTS], unpack(gone))
  end
  return math.max(size, 0)
end

local function write_results()
  if result_count == 0 then
    return
  end
  local size, ids = tonumber(redis.call('HGET', KEYS[@RESULT], '') or 0), {}
  for i = 1, result_count, 2 do
    ids[(i + 1) / 2] = results[i]
    size = size + #results[i + 1]
  end
  for first = 1, #ids, @CHUNK do
    local ends = redis.call('ZMSCORE', KEYS[@RESULTS], unpack(ids, first, math.min(first + @CHUNK_REST, #ids)))
    for i, kept in ipairs(ends) do
      if kept then
        size = size - redis.call('HSTRLEN', KEYS[@RESULT], ids[first + i - 1])
      end
    end
  end
  for i = 1, result_count, @CHUNK do
    local last = math.min(i + @CHUNK_REST, result_count)
    redis.call('HSET', KEYS[@RESULT], unpack(results, i, last))
    redis.call('ZADD', KEYS[@RESULTS], unpack(result_ends, i, last))
  end
  size = trim_results(size)
  redis.call('HSET', KEYS[@RESULT], '', string.format('%.0f', size))
  -- Nothing that has an end outlives it.
  local last = redis.call('ZRANGE', KEYS[@RESULTS], -1, -1, 'WITHSCORES')
  local left = math.max((tonumber(last[2]) or now) - now, 0) + 1000
  redis.call('PEXPIRE', KEYS[@RESULT], left)
  redis.call('PEXPIRE', KEYS[@RESULTS], left)
end
