-- Shared: what runs is counted by its key from now on. Where no key has a concurrency nobody needs to know.

-- include use_keys.lua

-- Those that run now are counted once, the first @RUNS_MAX of them.
local function count_runs()
  if limits[@COUNTS_RUNS] == 1 then
    return
  end
  use_keys()
  limits[@COUNTS_RUNS], limits_change = 1, true
  local counted, keys = {}, {}
  for first = 0, @RUNS_MAX - 1, @CHUNK do
    local ids = redis.call('ZRANGE', KEYS[@CLAIMED], first, first + @CHUNK_REST)
    local found = #ids > 0 and redis.call('HMGET', KEYS[@STATE], unpack(ids)) or {}
    for _, text in ipairs(found) do
      local key = text and cmsgpack.unpack(text)[@KEY]
      if key then
        local record = key_record(key)
        record[@KEY_RUNNING] = record[@KEY_RUNNING] + 1
        if not counted[key] then
          counted[key], keys[#keys + 1] = true, key
        end
      end
    end
  end
  for _, key in ipairs(keys) do
    redis.call('HSET', KEYS[@KEY_RECORDS], key, cmsgpack.pack(key_record(key)))
  end
end
