-- Shared: the results that tasks leave behind, one of each id: HASH id -> packed version and bytes, and the bytes of all
-- under no id; ZSET id -> ms of its end. Of too many, those that end first go.

-- include record.lua

-- Id and packed result, end and id, one after another, and where those of an id are.
local results, result_ends, result_count, result_at = {}, {}, 0, {}
-- How long the last one is kept, and its end: mostly those of the next one, too.
local kept_for, kept_until

local function keep_result(id, version, time, bytes)
  local at = result_at[id]
  if not at then
    at = result_count
    result_at[id], result_count = at, at + 2
  end
  if time ~= kept_for then
    kept_for, kept_until = time, string.format('%.0f', now + time)
  end
  results[at + 1], results[at + 2] = id, cmsgpack.pack({ version, bytes })
  result_ends[at + 1], result_ends[at + 2] = kept_until, id
end
