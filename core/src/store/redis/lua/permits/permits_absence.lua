-- Shared: what is known about a lock that a token has no permits of.
local function permits_absence(meta)
  return { @GONE, tonumber(meta[1]) or 0, tonumber(meta[4]) or 0, tonumber(meta[5]) or 0, 0 }
end
