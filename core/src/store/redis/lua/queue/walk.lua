-- Shared: tasks of one state in their order, for peek and list.

-- include tell.lua
-- include sets.lua
-- include held.lua

-- How many are told at most, whether with their bodies, what their ids begin with, and the place after which it goes on:
-- set 0 is the beginning.
local most, prefix, from_set, from_score, from_member = 0, '', 0, '', ''
-- How many were looked at, and the last one.
local looked, at_set, at_score, at_member = 0, 0, '', ''

local function tell_one(set, member, score, state)
  if set == @PART_INTAKE then
    return begins_with(member, prefix) and tell_intake(member, score)
  elseif set == @PART_FAILED or set == @PART_EXPIRED then
    return tell_dead(member, prefix)
  elseif set == @PART_HELD then
    local id = held_task(member)
    return begins_with(id, prefix) and tell_live(id, state, 0)
  elseif begins_with(member, prefix) then
    tell_live(member, state, state == @CLAIMED and score - now or 0)
  end
end

-- Looks at members until there is no room: `found` has them with their scores, from `first` on in steps.
local function tell_all(set, found, first, last, step, state)
  for i = first, last, step do
    if told == most or looked == @LIST_LOOK then
      is_full = true
    end
    if not is_full then
      tell_one(set, found[i], found[i + 1], state)
    end
    if is_full then
      return
    end
    looked = looked + 1
    at_set, at_score, at_member = set, found[i + 1], found[i]
  end
end

-- Whether the walk comes to this set: it may go on in a later one.
local function comes_to(set)
  return not is_full and (from_set == 0 or from_set == set)
end

-- Members of the ranks `first` to `last`.
local function walk(set, first, last, state)
  if not comes_to(set) then
    return
  end
  if from_set == set then
    first, from_set = math.max(first, rank_of(set, from_score, from_member, true)), 0
  end
  local chunk = prefix == '' and most + 1 or @LIST_LOOK
  for rank = first, last, chunk do
    local found = range(set, rank, math.min(rank + chunk - 1, last))
    tell_all(set, found, 1, #found, 2, state)
    if is_full then
      return
    end
  end
end

-- All members, the last first.
local function walk_back(set)
  if not comes_to(set) then
    return
  end
  local last = count(set, '-inf', '+inf') - 1
  if from_set == set then
    last, from_set = rank_of(set, from_score, from_member, false) - 1, 0
  end
  for rank = last, 0, -most do
    local found = range(set, math.max(rank - most + 1, 0), rank)
    tell_all(set, found, #found - 1, 1, -2, @DEAD)
    if is_full then
      return
    end
  end
end

-- What is due, in the order in which it would be claimed: ready tasks, scheduled ones that are due, those
-- whose lease has ended, the intake.
local function walk_due()
  walk(@PART_READY, 0, redis.call('ZCARD', KEYS[@READY]) - 1, @READY)
  walk(@PART_SCHEDULED, 0, count(@PART_SCHEDULED, '-inf', now) - 1, @READY)
  walk(@PART_CLAIMED, 0, count(@PART_CLAIMED, '-inf', now) - 1, @READY)
  if intake_size > 0 then
    walk(@PART_INTAKE, 0, count(@PART_INTAKE, '-inf', now / 1000) - 1, @READY)
  end
end
