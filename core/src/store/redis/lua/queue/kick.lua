-- Move dead tasks back to ready, with attempts starting again.
-- keys:    the queue's
-- args:    1 how many of the oldest whose ids do not live, or "" and then ids: the newest record of each
-- returns: {@COUNTED, how many}

-- include record.lua
-- include wake.lua
-- include task.lua
-- include write.lua
-- include check.lua
-- include dead.lua
-- include keep.lua
-- include succeed.lua
-- include die.lua

-- The dead records that were asked for.
local function wanted()
  local receipts, found = {}, {}
  if ARGV[1] == '' then
    for i = 2, #ARGV do
      receipts[#receipts + 1] = redis.call('HGET', KEYS[9], string.format('i%s', ARGV[i])) or nil
    end
  else
    receipts = redis.call('ZRANGE', KEYS[8], 0, @PROMOTE_MAX - 1)
    for _, receipt in ipairs(redis.call('ZRANGE', KEYS[12], 0, @PROMOTE_MAX - 1 - #receipts)) do
      receipts[#receipts + 1] = receipt
    end
  end
  for _, receipt in ipairs(receipts) do
    local packed_dead = redis.call('HGET', KEYS[9], string.format('r%s', receipt))
    -- Without `older` it has an id that no task may have.
    local dead = packed_dead and cmsgpack.unpack(packed_dead)
    if dead and dead[@OLDER] then
      found[#found + 1] = dead
    end
  end
  return found
end

local function revive(dead)
  local id, expires = dead[@ID], dead[@EXPIRES]
  put(id, {
    next_number(), now, dead[@PRIORITY], 0, dead[@MAX_ATTEMPTS], now,
    -- It would die again at once.
    expires > now and expires or 0,
    0, dead[@SETTLED], dead[@VERDICT], dead[@REASON], dead[@SIZE], dead[@BODY],
  })
end

check_live()
check_dead()
local deads, ids, revived = wanted(), {}, {}
for i, dead in ipairs(deads) do
  ids[i] = dead[@ID]
end
fetch(ids)
local most = tonumber(ARGV[1]) or #deads
for _, dead in ipairs(deads) do
  if #revived < most and not mains[dead[@ID]] then
    revive(dead)
    revived[#revived + 1] = dead
  end
end
if #revived > 0 then
  redis.call('HSET', KEYS[2], 'counts', packed_counts())
  write()
  for _, dead in ipairs(revived) do
    drop_dead(dead, true)
  end
  keep()
  wake()
end
return { @COUNTED, #revived }
