-- Shared: members of HELD: key, \1, turn with 16 digits, id. All have one score, so a key's are in order of their turns.

-- include turn.lua

local function held_member(id, task)
  return string.format('%s\1%016.0f%s', task[@KEY], turn_of(task), id)
end

-- The id and the turn of a member.
local function held_task(member)
  local key_end = string.find(member, '\1', 1, true)
  return string.sub(member, key_end + 17), tonumber(string.sub(member, key_end + 1, key_end + 16))
end
