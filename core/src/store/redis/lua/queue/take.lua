-- Shared: takes ready tasks in their order. Needs promote.lua.

-- At most `max` tasks, and @MAX_REPLY_BYTES of bodies unless one alone is larger; each under a new receipt.
-- Those that have expired die; no more than @PROMOTE_MAX are looked at.
local function take(max)
  local taken, count, size, looked = {}, 0, 0, 0
  for _ = 1, @PROMOTE_MAX do
    local ids = redis.call('ZRANGE', KEYS[6], looked, looked + max - count - 1)
    if #ids == 0 or count == max or looked >= @PROMOTE_MAX then
      return taken
    end
    fetch(ids)
    for _, id in ipairs(ids) do
      local main = mains[id]
      looked = looked + 1
      stood[id] = @READY
      if not main then
        forget(id)
      elseif main[@EXPIRES] ~= 0 and main[@EXPIRES] <= now then
        die(id, 'expired', main[@RECEIPT])
      else
        size = size + main[@SIZE]
        if size > @MAX_REPLY_BYTES and count > 0 then
          return taken
        end
        main[@ATTEMPTS], main[@RECEIPT] = main[@ATTEMPTS] + 1, next_number()
        count = count + 1
        taken[count] = id
      end
    end
  end
  return taken
end
