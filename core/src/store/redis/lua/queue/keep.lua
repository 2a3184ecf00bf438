-- Shared: what every verb that changes something ends with: its events, the caps of the dead, how long everything lives, and the
-- counts.

-- include dead.lua
-- include happen.lua

-- How long the dead are kept where no task lives: until the youngest is over its age, and a second longer, so that
-- whoever comes then still counts them; 0 if there are none.
local function dead_for()
  if trim_at == 0 then
    return 0
  end
  local failed = redis.call('ZREVRANGE', KEYS[@DEAD], 0, 0, 'WITHSCORES')
  local expired = redis.call('ZREVRANGE', KEYS[@EXPIRED], 0, 0, 'WITHSCORES')
  local youngest = math.max(tonumber(failed[2] or 0), tonumber(expired[2] or 0))
  return youngest == 0 and 0 or math.max(youngest + (dead_age or @DEAD_AGE) - now, 0) + 1000
end

-- Nothing without an end outlives the record that finds it. While tasks live nothing ends. Without any the record
-- goes @QUEUE_TTL after the queue's last use, unless it has settings or schedules; and the dead end by themselves before it does.
-- `has_put`: whether a task was stored, so that one lives.
local function keep(has_put)
  write_events()
  local lives, before = has_put or redis.call('EXISTS', KEYS[@STATE]) == 1, ends_at
  if lives and before == 1 then
    -- There may be dead ones all the same: a server without memory dropped the record, and not them.
    trim_at = 1
  end
  local had_dead = trim_at ~= 0
  if had_dead and trim_at <= now then
    trim_dead()
  end
  local dead_left = 0
  if lives then
    ends_at = 0
  elseif (counter > 0 or trim_at ~= 0) and (lives_anew or ends_at < now + @QUEUE_TTL) then
    dead_left = dead_for()
    ends_at = now + math.max(@QUEUE_TTL + @QUEUE_REFRESH, dead_left + @QUEUE_REFRESH)
  end
  write_counts()
  if lives and before ~= 0 then
    redis.call('PERSIST', KEYS[@QUEUE])
    if had_dead then
      redis.call('PERSIST', KEYS[@BODY])
      redis.call('PERSIST', KEYS[@DEAD])
      redis.call('PERSIST', KEYS[@GRAVE])
      redis.call('PERSIST', KEYS[@EXPIRED])
    end
  end
  if dead_left > 0 then
    redis.call('PEXPIRE', KEYS[@BODY], dead_left)
    redis.call('PEXPIRE', KEYS[@DEAD], dead_left)
    redis.call('PEXPIRE', KEYS[@GRAVE], dead_left)
    redis.call('PEXPIRE', KEYS[@EXPIRED], dead_left)
  end
  if not lives and (lives_anew or ends_at ~= before) and not record[2] and not record[3] and not watch then
    redis.call('PEXPIRE', KEYS[@QUEUE], math.max(ends_at - now, 1))
  end
end
