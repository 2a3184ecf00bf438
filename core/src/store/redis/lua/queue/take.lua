-- Shared: takes ready tasks in their order.

-- include promote.lua

-- At most `max` tasks, and @MAX_REPLY_BYTES of bodies unless one alone is larger; each under a new receipt.
-- Those that have expired die, no more than @EXPIRE_MAX.
local function take(max)
  local taken, count, size, looked = {}, 0, 0, 0
  for _ = 1, @EXPIRE_MAX do
    local ids = redis.call('ZRANGE', KEYS[@READY], looked, looked + max - count - 1)
    if #ids == 0 or count == max then
      return taken
    end
    fetch(ids)
    for _, id in ipairs(ids) do
      if looked - count >= @EXPIRE_MAX then
        return taken
      end
      local main = mains[id]
      looked = looked + 1
      stood[id] = @READY
      if not main then
        forget(id)
      elseif not expire(id) then
        size = size + main[@SIZE]
        if size > @MAX_REPLY_BYTES and count > 0 then
          return taken
        end
        main[@ATTEMPTS], main[@RECEIPT] = main[@ATTEMPTS] + 1, next_number()
        happen(@EVENT_STARTED, id, main)
        count = count + 1
        taken[count] = id
      end
    end
  end
  return taken
end
