-- Shared: gives a repeated claim the same tasks again.

-- include task.lua

-- Gives those again that a call was given before, as far as they are still under that lease.
local function give_again(before, reply)
  local ids = {}
  for i = 1, #before, 2 do
    ids[#ids + 1] = before[i]
  end
  fetch(ids)
  for i = 1, #before, 2 do
    local id = before[i]
    local main, ends = mains[id], tonumber(redis.call('ZSCORE', KEYS[@CLAIMED], id) or 0)
    if main and main[@RECEIPT] == before[i + 1] and ends > now then
      local length = #reply
      reply[length + 1], reply[length + 2] = id, cmsgpack.pack(main)
      reply[length + 3], reply[length + 4] = redis.call('HGET', KEYS[@BODY], main[@BODY]) or '', ends - now
    end
  end
end
