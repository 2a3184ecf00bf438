-- Shared: places in the queue's sets. A place is a score and a member; it stays
-- where it is when members come and go, also its own.

-- include order.lua

local function count(set, low, high)
  if set == @PART_INTAKE then
    return redis.call('ZCOUNT', KEYS[@INTAKE], low, high)
  elseif set == @PART_SCHEDULED then
    return redis.call('ZCOUNT', KEYS[@SCHEDULED], low, high)
  elseif set == @PART_READY then
    return redis.call('ZCOUNT', KEYS[@READY], low, high)
  elseif set == @PART_CLAIMED then
    return redis.call('ZCOUNT', KEYS[@CLAIMED], low, high)
  elseif set == @PART_HELD then
    return redis.call('ZCOUNT', KEYS[@HELD], low, high)
  elseif set == @PART_FAILED then
    return redis.call('ZCOUNT', KEYS[@DEAD], low, high)
  end
  return redis.call('ZCOUNT', KEYS[@EXPIRED], low, high)
end

-- Members and their scores, by rank.
local function range(set, first, last)
  if set == @PART_INTAKE then
    return redis.call('ZRANGE', KEYS[@INTAKE], first, last, 'WITHSCORES')
  elseif set == @PART_SCHEDULED then
    return redis.call('ZRANGE', KEYS[@SCHEDULED], first, last, 'WITHSCORES')
  elseif set == @PART_READY then
    return redis.call('ZRANGE', KEYS[@READY], first, last, 'WITHSCORES')
  elseif set == @PART_CLAIMED then
    return redis.call('ZRANGE', KEYS[@CLAIMED], first, last, 'WITHSCORES')
  elseif set == @PART_HELD then
    return redis.call('ZRANGE', KEYS[@HELD], first, last, 'WITHSCORES')
  elseif set == @PART_FAILED then
    return redis.call('ZRANGE', KEYS[@DEAD], first, last, 'WITHSCORES')
  end
  return redis.call('ZRANGE', KEYS[@EXPIRED], first, last, 'WITHSCORES')
end

-- How many members of the set come before this place; `with`: or are there.
local function rank_of(set, score, member, with)
  local low = count(set, '-inf', string.format('(%s', score))
  local high = low + count(set, score, score)
  -- Halving: no set has more than 2^60 members.
  for _ = 1, 60 do
    if low >= high then
      break
    end
    local middle = math.floor((low + high) / 2)
    local found = range(set, middle, middle)[1]
    if comes_after(found, member) or (found == member and not with) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local function begins_with(text, prefix)
  return string.sub(text, 1, #prefix) == prefix
end
