-- One flow that is no draft. Reads only.
-- keys:    the queue's; FLOWS
-- args:    1 id
-- returns: {@FLOWS_FOUND, packed, graph, names, states} | {@ABSENT}

local id = ARGV[1]
local found = redis.call(
  'HMGET', KEYS[@FLOWS], id, string.format('\1%s', id), string.format('\2%s', id), string.format('\3%s', id)
)
if not found[1] or cmsgpack.unpack(found[1])[@IS_DRAFT] == 1 then
  return { @ABSENT }
end
return { @FLOWS_FOUND, found[1], found[2] or '', found[3] or '', found[4] or '' }
