-- Shared: the keys of flows, which only their verbs name.
-- HASH FLOWS: id -> packed flow (FLOW_FIELDS), \1 and id -> its graph, \2 and id -> what its nodes are called, \3 and id -> their
-- states; \4 and the name of a queue -> number of the last message that came from there. HASH FLOW_NODES: id, \1 and number of
-- a node -> packed node (NODE_FIELDS); with \2 -> its result, with \3 -> its body, so that none is read that is not asked for.
-- ZSET FLOW_TIMES: id -> ms at which it ended; of those that have not, and of drafts, @FLOW_BASE + ms at which they were put in.

-- A key of another type fails here, before the first write.
local function check_flows()
  redis.call('HLEN', KEYS[@FLOWS])
  redis.call('HLEN', KEYS[@FLOW_NODES])
  redis.call('ZCARD', KEYS[@FLOW_TIMES])
end
