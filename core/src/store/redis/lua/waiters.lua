-- Who waits for the lock? In the order of the line, a bounded number. Reads only.
-- keys:    LINE, WAITERS
-- args:    none
-- returns: {@IN_LINE, then of each: since us, waiting us, owner or "", weight}

-- include live_waiters.lua

return live_waiters('^%d+ %d (.*) %x+ %d+$', nil)
