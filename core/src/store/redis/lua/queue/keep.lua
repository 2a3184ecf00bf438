-- Shared: what every verb that changes something ends with: its events, the caps of the dead, how long everything lives, and the
-- counts.

-- include happen.lua
-- include hints.lua
-- include outbox.lua

local function write_limits()
  redis.call('HSET', KEYS[@QUEUE], 'limits', cmsgpack.pack(limits))
  limits_change = false
end

-- Nothing without an end outlives the record that finds it. While tasks live nothing ends. Without any the record
-- goes @QUEUE_TTL after the queue's last use, unless it has settings, schedules or flows; and the dead end by themselves before it does.
-- `has_put`: whether a task was stored, so that one lives.
local function keep(has_put)
  if happened_count > 0 then
    -- include write_events.lua
    write_events()
  end
  if message_count > 0 then
    -- include write_messages.lua
    write_messages()
  end
  local lives, before = has_put or redis.call('EXISTS', KEYS[@STATE]) == 1, ends_at
  if lives and before == 1 then
    -- There may be dead ones all the same: a server without memory dropped the record, and not them.
    trim_at = 1
  end
  local had_dead = trim_at ~= 0
  if had_dead and trim_at <= now then
    -- include dead.lua
    trim_dead()
  end
  local dead_left = 0
  if lives then
    ends_at = 0
  elseif (counter > 0 or trim_at ~= 0) and (lives_anew or ends_at < now + @QUEUE_TTL) then
    if trim_at ~= 0 then
      -- include dead.lua
      dead_left = dead_for()
    end
    ends_at = now + math.max(@QUEUE_TTL + @QUEUE_REFRESH, dead_left + @QUEUE_REFRESH)
  end
  write_counts()
  local limits_changed = limits_change
  if limits_changed then
    write_limits()
  end
  if lives and before ~= 0 then
    redis.call('PERSIST', KEYS[@QUEUE])
    if limits then
      redis.call('PERSIST', KEYS[@KEY_RECORDS])
      redis.call('PERSIST', KEYS[@KEY_WAITS])
    end
    if had_dead then
      redis.call('PERSIST', KEYS[@BODY])
      redis.call('PERSIST', KEYS[@DEAD])
      redis.call('PERSIST', KEYS[@GRAVE])
      redis.call('PERSIST', KEYS[@EXPIRED])
    end
  end
  if limits and not lives and (limits_changed or ends_at ~= before) then
    -- What is left of keys is when those with a rate may go on.
    local last = redis.call('ZREVRANGE', KEYS[@KEY_WAITS], 0, 0, 'WITHSCORES')
    local left = math.max((tonumber(last[2]) or 0) - @FORGET_BASE - now, 0) + 1000
    redis.call('PEXPIRE', KEYS[@KEY_RECORDS], left)
    redis.call('PEXPIRE', KEYS[@KEY_WAITS], left)
  end
  if dead_left > 0 then
    redis.call('PEXPIRE', KEYS[@BODY], dead_left)
    redis.call('PEXPIRE', KEYS[@DEAD], dead_left)
    redis.call('PEXPIRE', KEYS[@GRAVE], dead_left)
    redis.call('PEXPIRE', KEYS[@EXPIRED], dead_left)
  end
  local is_limited = limits
    and limits[@MAX_RUNNING] + limits[@RATE_COUNT] + limits[@KEY_CONCURRENCY] + limits[@KEY_COUNT] + limits[@OWN_SET] > 0
  if not lives and (lives_anew or ends_at ~= before) and not record[2] and not record[3] and not watch and not is_limited
    and not outbox then
    redis.call('PEXPIRE', KEYS[@QUEUE], math.max(ends_at - now, 1))
  end
end
