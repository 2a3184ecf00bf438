-- Shared: takes ready tasks in their order. Needs promote.lua.

-- At most `max` tasks, and @MAX_REPLY_BYTES of bodies unless one alone is larger; each under a new receipt.
-- Those that have expired die; no more than @PROMOTE_MAX are looked at. What is taken stays in line until the
-- caller writes.
local function take(max)
  local taken, is_taken, count, size, looked, has_more = {}, {}, 0, 0, 0, false
  for _ = 1, @PROMOTE_MAX do
    local ids = redis.call('ZRANGE', KEYS[6], looked, looked + max - count - 1)
    if count == max or looked >= @PROMOTE_MAX or (#ids == 0 and not has_more) then
      return taken
    elseif #ids == 0 then
      -- Successors of those that died come in line now.
      write()
      looked, has_more = 0, false
    end
    fetch(ids)
    for _, id in ipairs(ids) do
      local main = mains[id]
      looked = looked + 1
      stood[id] = @READY
      if not main then
        forget(id)
      elseif not is_taken[id] and main[@EXPIRES] ~= 0 and main[@EXPIRES] <= now then
        die(id, 'expired', main[@RECEIPT])
        has_more = has_more or stands[id] == @READY
      elseif not is_taken[id] then
        size = size + main[@SIZE]
        if size > @MAX_REPLY_BYTES and count > 0 then
          return taken
        end
        main[@ATTEMPTS], main[@RECEIPT] = main[@ATTEMPTS] + 1, next_number()
        count = count + 1
        taken[count], is_taken[id] = id, true
      end
    end
  end
  return taken
end
