-- Shared: a part of a set, for peek and list. Needs tell.lua.

-- Members and their scores; `left` says whether the score is the end of a lease that runs.
local function tell_members(members, state)
  for i = 1, #members, 2 do
    if not is_full then
      tell_live(members[i], state, state == @CLAIMED and members[i + 1] - now or 0)
    end
    if not is_full then
      seen = seen + 1
    end
  end
end

local function tell_buried(receipts)
  for _, receipt in ipairs(receipts) do
    if not is_full then
      tell_dead(receipt)
    end
    if not is_full then
      seen = seen + 1
    end
  end
end

local function tell_entries(entries)
  for i = 1, #entries, 2 do
    if not is_full then
      tell_intake(entries[i], entries[i + 1])
      seen = seen + 1
    end
  end
end

-- What is due, in the order in which it would be claimed: ready tasks, scheduled ones that are due, those
-- whose lease has ended, the intake. The first `skip` are passed over.
local function tell_due(skip, max)
  tell_members(redis.call('ZRANGE', KEYS[6], '-inf', '+inf', 'BYSCORE', 'LIMIT', skip, max, 'WITHSCORES'), @READY)
  skip = math.max(skip - redis.call('ZCARD', KEYS[6]), 0)
  tell_members(redis.call('ZRANGE', KEYS[5], '-inf', now, 'BYSCORE', 'LIMIT', skip, max - seen, 'WITHSCORES'),
    @READY)
  skip = math.max(skip - redis.call('ZCOUNT', KEYS[5], '-inf', now), 0)
  tell_members(redis.call('ZRANGE', KEYS[7], '-inf', now, 'BYSCORE', 'LIMIT', skip, max - seen, 'WITHSCORES'),
    @READY)
  skip = math.max(skip - redis.call('ZCOUNT', KEYS[7], '-inf', now), 0)
  if intake_size > 0 then
    tell_entries(redis.call('ZRANGE', KEYS[1], '-inf', now / 1000, 'BYSCORE', 'LIMIT', skip, max - seen,
      'WITHSCORES'))
  end
end
