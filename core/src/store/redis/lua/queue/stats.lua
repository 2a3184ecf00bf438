-- How many tasks there are, and what happened so far. Reads only.
-- keys:    the queue's
-- args:    none
-- returns: {@COUNTS, scheduled, ready, claimed, dead, successors, paused 0 or 1, waiters, us until the next due or -1,
--          enqueued, acked, retried, died, then the settings, -1 where none is set: max_len, dead_max,
--          dead_age ms, dead_bytes, intake 0 or 1; how many schedules, for how many ms the first of them has been due; how
--          many events are kept; how many tasks are held; how many keys wait for a time, and ms until the first of them may
--          go on or -1; whether max_running is reached 0 or 1; us until the queue lets the next one go, or -1 if nothing
--          holds it, and whether that is a throttle 0 or 1; max_running, rate: count, per ms, burst; of keys:
--          concurrency, rate: count, per ms, burst; 0 if there is no limit; how many flows live}

-- include record.lua
-- include due.lua
-- include limits.lua

local due, ended = redis.call('ZCOUNT', KEYS[@SCHEDULED], '-inf', now), redis.call('ZCOUNT', KEYS[@CLAIMED], '-inf', now)
local scheduled, ready, claimed =
  redis.call('ZCARD', KEYS[@SCHEDULED]), redis.call('ZCARD', KEYS[@READY]), redis.call('ZCARD', KEYS[@CLAIMED])
local held = redis.call('ZCARD', KEYS[@HELD])
live = scheduled + ready + claimed + held
local free, opens = gate()
local waits = redis.call('ZRANGE', KEYS[@KEY_WAITS], 0, 0, 'WITHSCORES')
local next_key = tonumber(waits[2]) or @FORGET_BASE
local limit = limits or no_limits()
-- Beside them the messages of the outbox.
local messages = outbox and outbox[@LAST_MESSAGE] - outbox[@FIRST_MESSAGE] + 1 or 0
local successors = redis.call('HLEN', KEYS[@STATE]) - live - messages
local in_intake = intake_size > 0 and redis.call('ZCOUNT', KEYS[@INTAKE], '-inf', now / 1000) or 0
return {
  @COUNTS, scheduled - due + intake_size - in_intake, ready + due + ended + in_intake, claimed - ended,
  redis.call('ZCARD', KEYS[@DEAD]) + redis.call('ZCARD', KEYS[@EXPIRED]), math.max(successors, 0), paused and 1 or 0,
  redis.call('ZCOUNT', KEYS[@IDLE], now + 1, '+inf'), next_due(),
  enqueued, acked, retried, died, max_len or -1, dead_max or -1, dead_age or -1, dead_bytes or -1, intake or -1,
  agenda_size, math.max(now - agenda_due, 0), watch and watch[@EVENTS_KEPT] or 0,
  held, redis.call('ZCOUNT', KEYS[@KEY_WAITS], '-inf', '(@FORGET_BASE'),
  next_key < @FORGET_BASE and math.max(next_key - now, 0) or -1,
  opens == math.huge and 1 or 0, free == 0 and opens < math.huge and math.max(opens - now_us, 0) or -1,
  limit[@HELD_UNTIL] > now and 1 or 0, limit[@MAX_RUNNING], limit[@RATE_COUNT], limit[@RATE_PER], limit[@RATE_BURST],
  limit[@KEY_CONCURRENCY], limit[@KEY_COUNT], limit[@KEY_PER], limit[@KEY_BURST],
  outbox and outbox[@LIVE_FLOWS] or 0,
}
