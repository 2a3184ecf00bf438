-- Shared: places in the queue's sets, which go by the numbers of their keys. A place is a score and a member; it stays
-- where it is when members come and go, also its own.

local function count(set, low, high)
  if set == 1 then
    return redis.call('ZCOUNT', KEYS[1], low, high)
  elseif set == 5 then
    return redis.call('ZCOUNT', KEYS[5], low, high)
  elseif set == 6 then
    return redis.call('ZCOUNT', KEYS[6], low, high)
  elseif set == 7 then
    return redis.call('ZCOUNT', KEYS[7], low, high)
  elseif set == 8 then
    return redis.call('ZCOUNT', KEYS[8], low, high)
  end
  return redis.call('ZCOUNT', KEYS[12], low, high)
end

-- Members and their scores, by rank.
local function range(set, first, last)
  if set == 1 then
    return redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES')
  elseif set == 5 then
    return redis.call('ZRANGE', KEYS[5], first, last, 'WITHSCORES')
  elseif set == 6 then
    return redis.call('ZRANGE', KEYS[6], first, last, 'WITHSCORES')
  elseif set == 7 then
    return redis.call('ZRANGE', KEYS[7], first, last, 'WITHSCORES')
  elseif set == 8 then
    return redis.call('ZRANGE', KEYS[8], first, last, 'WITHSCORES')
  end
  return redis.call('ZRANGE', KEYS[12], first, last, 'WITHSCORES')
end

-- As sets order members of one score: byte by byte. `<` goes by the server's locale.
local function comes_after(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then
      return a > b
    end
  end
  return #one > #other
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
