-- Shared: whether a call is new, the slot's last one again, or older than that. The slot's key holds the
-- number and the reply of its last call; the reply of one that was given up is false.
local stored = ARGV[1] ~= '' and redis.call('GET', KEYS[@CALL])
local number, last, after_number = tonumber(ARGV[1]), 0, 0
if stored then
  after_number, last = cmsgpack.unpack_one(stored)
end

local function stored_reply()
  local _, reply = cmsgpack.unpack_one(stored, after_number)
  return reply
end

-- `more`: for how long a repetition may come, or has something to be given again.
local function remember(reply, more)
  redis.call('SET', KEYS[@CALL], cmsgpack.pack(number, reply), 'PX', @CALL_TTL + more)
end
