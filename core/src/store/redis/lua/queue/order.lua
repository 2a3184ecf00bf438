-- Shared: the order of a set's members.

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
