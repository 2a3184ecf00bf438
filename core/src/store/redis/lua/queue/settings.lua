-- Shared: stores the settings.

-- include record.lua

local function write_settings()
  lives_anew = true
  if paused or max_len or dead_max or dead_age or dead_bytes or intake then
    record[2] = cmsgpack.pack({ paused, max_len, dead_max, dead_age, dead_bytes, intake })
    redis.call('HSET', KEYS[@QUEUE], 'settings', record[2])
    redis.call('PERSIST', KEYS[@QUEUE])
  else
    record[2] = false
    redis.call('HDEL', KEYS[@QUEUE], 'settings')
  end
end
