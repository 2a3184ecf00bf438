-- Shared: the dead records that kick and remove_dead are about.

-- include sets.lua
-- include dead.lua

local until_ms = tonumber(string.sub(ARGV[5], 2))
if string.sub(ARGV[5], 1, 1) == 'i' then
  until_ms = math.max(now - until_ms, 0)
end
local most, from_set = tonumber(ARGV[2]), tonumber(ARGV[6])
local wanted, is_known, looked, at_set, at_score, at_member = {}, {}, 0, 0, '', ''

local function look_at(receipt)
  local packed_dead = receipt and redis.call('HGET', KEYS[@GRAVE], string.format('r%s', receipt))
  local dead = packed_dead and cmsgpack.unpack(packed_dead)
  if dead and not is_known[receipt] and dead[@DIED_AT] <= until_ms and begins_with(dead[@REASON], ARGV[3])
    and begins_with(dead[@ID], ARGV[4]) then
    wanted[#wanted + 1], is_known[receipt] = dead, true
  end
end

-- Looks along a set from where the last call ended, at @SWEEP_LOOK records in all.
local function look_along(set)
  if from_set ~= 0 and from_set ~= set then
    return
  end
  local first = from_set == set and rank_of(set, ARGV[7], ARGV[8], true) or 0
  from_set = 0
  local found = range(set, first, first + @SWEEP_LOOK - looked - 1)
  for i = 1, #found, 2 do
    look_at(found[i])
    looked = looked + 1
    at_set, at_score, at_member = set, found[i + 1], found[i]
  end
end

if ARGV[1] == 'o' then
  look_along(@PART_FAILED)
  if looked < @SWEEP_LOOK then
    look_along(@PART_EXPIRED)
  end
else
  for i = 9, #ARGV do
    look_at(ARGV[1] == 'r' and ARGV[i] or redis.call('HGET', KEYS[@GRAVE], string.format('i%s', ARGV[i])))
  end
end

-- What the call answers that swept so many.
local function swept(many)
  local reply = { @SWEPT, many, until_ms, looked == @SWEEP_LOOK and at_set or 0, at_score, at_member }
  return reply
end
