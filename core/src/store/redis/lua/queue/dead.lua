-- Shared: the dead records that are stored. Those of tasks that expired are in a set of their own, with the same caps, so
-- that they push no failure out.

-- include record.lua

-- Takes a stored dead record away, and its body unless that is alive again. The records of an id are a chain: each
-- knows the next older one (`o`) and the next newer one (`n`), and the id the newest (`i`).
local function drop_dead(dead, is_kicked)
  local receipt = string.format('%.0f', dead[@RECEIPT])
  if redis.call('ZREM', KEYS[@DEAD], receipt) == 1 then
    dead_size = math.max(dead_size - dead[@SIZE], 0)
  elseif redis.call('ZREM', KEYS[@EXPIRED], receipt) == 1 then
    expired_size = math.max(expired_size - dead[@SIZE], 0)
  end
  local to_older, to_newer = string.format('o%s', receipt), string.format('n%s', receipt)
  local chain = redis.call('HMGET', KEYS[@GRAVE], to_older, to_newer)
  redis.call('HDEL', KEYS[@GRAVE], string.format('r%s', receipt), to_older, to_newer)
  if dead[@BODY] ~= 0 and not is_kicked then
    redis.call('HDEL', KEYS[@BODY], dead[@BODY])
  end
  if dead[@NAMELESS] then
    return
  end
  local older, newer = chain[1], chain[2]
  local of_newer = newer and string.format('o%s', newer) or string.format('i%s', dead[@ID])
  if older then
    redis.call('HSET', KEYS[@GRAVE], of_newer, older)
  else
    redis.call('HDEL', KEYS[@GRAVE], of_newer)
  end
  if older and newer then
    redis.call('HSET', KEYS[@GRAVE], string.format('n%s', older), newer)
  elseif older then
    redis.call('HDEL', KEYS[@GRAVE], string.format('n%s', older))
  end
end

-- Drops the oldest ones beyond the caps, at most @DEAD_TRIM of each kind; the next verb goes on. Seldom needed:
-- so the functions in here are made when it is called, and not by each script.
local function trim_dead()
  -- When the oldest of a kind has to go: 1 if there are more than may be, 0 if there are none.
  local function goes_at(count, size, oldest)
    if count == 0 then
      return 0
    end
    if count > (dead_max or @DEAD_MAX) or size > (dead_bytes or @DEAD_BYTES) then
      return 1
    end
    return tonumber(oldest[2]) + (dead_age or @DEAD_AGE)
  end

  -- Drops those of the `oldest` that are beyond the caps; `count` is how many there are of this kind.
  local function trim(oldest, count, expired)
    for i = 1, #oldest, 2 do
      local at = goes_at(count, expired and expired_size or dead_size, { oldest[i], oldest[i + 1] })
      if at > now then
        return
      end
      count = count - 1
      local packed_dead = redis.call('HGET', KEYS[@GRAVE], string.format('r%s', oldest[i]))
      if packed_dead then
        drop_dead(cmsgpack.unpack(packed_dead))
      elseif expired then
        redis.call('ZREM', KEYS[@EXPIRED], oldest[i])
      else
        redis.call('ZREM', KEYS[@DEAD], oldest[i])
      end
    end
  end

  -- When the first of those that failed has to go, and of those that expired.
  local function failed_goes_at()
    return goes_at(redis.call('ZCARD', KEYS[@DEAD]), dead_size, redis.call('ZRANGE', KEYS[@DEAD], 0, 0, 'WITHSCORES'))
  end

  local function expired_goes_at()
    return goes_at(redis.call('ZCARD', KEYS[@EXPIRED]), expired_size, redis.call('ZRANGE', KEYS[@EXPIRED], 0, 0, 'WITHSCORES'))
  end

  local failed, expired = failed_goes_at(), expired_goes_at()
  if failed ~= 0 and failed <= now then
    trim(redis.call('ZRANGE', KEYS[@DEAD], 0, @DEAD_TRIM - 1, 'WITHSCORES'), redis.call('ZCARD', KEYS[@DEAD]), false)
    failed = failed_goes_at()
  end
  if expired ~= 0 and expired <= now then
    trim(redis.call('ZRANGE', KEYS[@EXPIRED], 0, @DEAD_TRIM - 1, 'WITHSCORES'), redis.call('ZCARD', KEYS[@EXPIRED]), true)
    expired = expired_goes_at()
  end
  trim_at = failed == 0 and expired or expired == 0 and failed or math.min(failed, expired)
end

-- How long the dead are kept where no task lives: until the youngest is over its age, and a second longer, so that
-- whoever comes then still counts them; 0 if there are none.
local function dead_for()
  local failed = redis.call('ZREVRANGE', KEYS[@DEAD], 0, 0, 'WITHSCORES')
  local expired = redis.call('ZREVRANGE', KEYS[@EXPIRED], 0, 0, 'WITHSCORES')
  local youngest = math.max(tonumber(failed[2] or 0), tonumber(expired[2] or 0))
  return youngest == 0 and 0 or math.max(youngest + (dead_age or @DEAD_AGE) - now, 0) + 1000
end
