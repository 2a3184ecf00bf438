-- Shared: a take that is given up, of which a copy may come yet.

-- First what needs no memory.
redis.call('DEL', KEYS[@ENDED])
redis.call('SET', KEYS[@ENDED], '1', 'PX', @ENDED_TTL)
