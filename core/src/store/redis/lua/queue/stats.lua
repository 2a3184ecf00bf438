-- How many tasks there are, and what happened so far. Reads only.
-- keys:    the queue's
-- args:    none
-- returns: {@COUNTS, scheduled, ready, claimed, dead, successors, paused 0 or 1, waiters, us until the next due or -1,
--          enqueued, acked, retried, died, then the settings, -1 where none is set: max_len, dead_max,
--          dead_age ms, dead_bytes, intake 0 or 1; how many schedules, for how many ms the first of them has been due; how
--          many events are kept}

-- include record.lua
-- include due.lua

local due, ended = redis.call('ZCOUNT', KEYS[@SCHEDULED], '-inf', now), redis.call('ZCOUNT', KEYS[@CLAIMED], '-inf', now)
local scheduled, ready, claimed =
  redis.call('ZCARD', KEYS[@SCHEDULED]), redis.call('ZCARD', KEYS[@READY]), redis.call('ZCARD', KEYS[@CLAIMED])
live = scheduled + ready + claimed
local successors = redis.call('HLEN', KEYS[@STATE]) - live
local in_intake = intake_size > 0 and redis.call('ZCOUNT', KEYS[@INTAKE], '-inf', now / 1000) or 0
return {
  @COUNTS, scheduled - due + intake_size - in_intake, ready + due + ended + in_intake, claimed - ended,
  redis.call('ZCARD', KEYS[@DEAD]) + redis.call('ZCARD', KEYS[@EXPIRED]), math.max(successors, 0), paused and 1 or 0,
  redis.call('ZCOUNT', KEYS[@IDLE], now + 1, '+inf'), next_due(),
  enqueued, acked, retried, died, max_len or -1, dead_max or -1, dead_age or -1, dead_bytes or -1, intake or -1,
  agenda_size, math.max(now - agenda_due, 0), watch and watch[@EVENTS_KEPT] or 0,
}
