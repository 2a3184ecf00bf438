-- Shared: flows that are kept no longer.

-- include flows.lua

-- Drops those that ended long ago, and the oldest ones where too many have ended: a few at a time.
local function trim_flows()
  local ended, dropped = redis.call('ZCOUNT', KEYS[@FLOW_TIMES], '-inf', '(@FLOW_BASE'), 0
  local oldest = redis.call('ZRANGE', KEYS[@FLOW_TIMES], 0, @FLOWS_TRIM - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local at = tonumber(oldest[i + 1])
    local goes = at < @FLOW_BASE and (at < now - @FLOW_AGE or ended > @FLOWS_ENDED_MAX)
    if not goes or dropped >= @NODES_BATCH then
      return
    end
    ended, dropped = ended - 1, dropped + drop_flow(oldest[i])
  end
end
