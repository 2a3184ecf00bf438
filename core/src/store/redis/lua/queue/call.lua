-- Shared: whether a call is new, the slot's last one again, or older than that. The slot's key holds the
-- number and the reply of its last call; the reply of one that was given up is false.
local stored = ARGV[1] ~= '' and redis.call('GET', KEYS[12])
local number, last, after_number = tonumber(ARGV[1]), 0, 0
if stored then
  after_number, last = cmsgpack.unpack_one(stored)
end

local function stored_reply()
  local _, reply = cmsgpack.unpack_one(stored, after_number)
  return reply
end

local function remember(reply)
  redis.call('SET', KEYS[12], cmsgpack.pack(number, reply), 'PX', @CALL_TTL)
end
