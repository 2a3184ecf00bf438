-- Version 8 (the first had no queues, the second no permits, the third no owners of waiters and no cached values, the
-- fourth roused no waiters, knew no back-offs and had no floor of fences, the fifth did not tell what expired from what
-- failed, the seventh had indexes that cost more than they saved). Later versions only add (tables, indexes, columns
-- with a default) or drop indexes, so that an older library works on a newer file. Columns that came later stand at the
-- end of their tables, as they do in a file that an older library made (schema.rs adds them there). Times of leases and
-- waiters are microseconds of the boot clock.

-- One row: which boot the times belong to, and which libraries may use the file.
CREATE TABLE IF NOT EXISTS store (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  boot          TEXT    NOT NULL,
  least_version INTEGER NOT NULL,
  least_library TEXT    NOT NULL
);

-- One row per lock: its key (token and expires), and what outlives the key.
-- The key is free if token is NULL or expires has passed.
CREATE TABLE IF NOT EXISTS lock (
  id          INTEGER PRIMARY KEY,
  key         TEXT    NOT NULL UNIQUE,
  token       TEXT,
  expires     INTEGER NOT NULL DEFAULT 0,
  fence       INTEGER NOT NULL DEFAULT 0,
  born        INTEGER NOT NULL DEFAULT 0,
  broken      INTEGER NOT NULL DEFAULT 0,
  since       INTEGER NOT NULL DEFAULT 0, -- wall time of the grant in milliseconds
  owner       TEXT    NOT NULL DEFAULT '',
  ended_until INTEGER NOT NULL DEFAULT 0, -- no token in ended is remembered beyond this
  used        INTEGER NOT NULL,           -- wall time in milliseconds, renewed once a minute
  permits     INTEGER NOT NULL DEFAULT 0, -- how many of a semaphore are in use. Version 3
  floor       INTEGER NOT NULL DEFAULT 0 -- no fence below it is granted. Version 5
);
CREATE INDEX IF NOT EXISTS lock_by_use ON lock (used);

-- Who has permits of a read-write lock or a semaphore.
CREATE TABLE IF NOT EXISTS permit (
  lock    INTEGER NOT NULL,
  token   TEXT    NOT NULL,
  weight  INTEGER NOT NULL,
  fence   INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  since   INTEGER NOT NULL, -- wall time of the grant in milliseconds; 0: offered
  owner   TEXT    NOT NULL,
  PRIMARY KEY (lock, token)
) WITHOUT ROWID;
-- A library of an earlier version, which knows no permits, may be the one that forgets a lock, or the first
-- after a reboot.
CREATE TRIGGER IF NOT EXISTS forget_permits AFTER DELETE ON lock BEGIN
  DELETE FROM permit WHERE lock = old.id;
END;
CREATE TRIGGER IF NOT EXISTS end_permits AFTER UPDATE OF boot ON store BEGIN
  DELETE FROM permit;
END;

-- Values that were computed by the holders of locks. Their times end with the boot, as those of leases.
CREATE TABLE IF NOT EXISTS cached (
  lock        INTEGER PRIMARY KEY,
  value       BLOB    NOT NULL,
  fresh_until INTEGER NOT NULL,
  ends        INTEGER NOT NULL, -- later than fresh_until if it may be stale
  took        INTEGER NOT NULL  -- microseconds
);
CREATE INDEX IF NOT EXISTS cached_by_end ON cached (ends);
CREATE TRIGGER IF NOT EXISTS forget_cached AFTER DELETE ON lock BEGIN
  DELETE FROM cached WHERE lock = old.id;
END;
CREATE TRIGGER IF NOT EXISTS end_cached AFTER UPDATE OF boot ON store BEGIN
  DELETE FROM cached;
END;

-- The waiting lines, in order of arrival.
CREATE TABLE IF NOT EXISTS waiter (
  lock    INTEGER NOT NULL,
  arrival INTEGER NOT NULL,
  token   TEXT    NOT NULL,
  polled  INTEGER NOT NULL, -- ahead of the time by as much as it may be silent for longer than the first
  offered INTEGER NOT NULL, -- 0; 1: the lock; 2: only to ask at once (to an older library: as 1, until it asks)
  client  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  weight  INTEGER NOT NULL DEFAULT 0, -- how many permits are waited for. Version 3
  came    INTEGER NOT NULL DEFAULT 0, -- when it got in line; 0: an older library did not say. Version 4
  owner   TEXT    NOT NULL DEFAULT '', -- version 4
  PRIMARY KEY (lock, arrival)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS waiter_by_token ON waiter (lock, token);
CREATE INDEX IF NOT EXISTS waiter_by_poll ON waiter (polled);
CREATE INDEX IF NOT EXISTS waiter_by_offer ON waiter (client) WHERE offered = 1;
CREATE INDEX IF NOT EXISTS waiter_by_rousing ON waiter (client) WHERE offered = 2;

-- Tokens whose wait or lease has ended, so that a late copy of their acquire, or take of a limiter, changes nothing.
CREATE TABLE IF NOT EXISTS ended (
  lock    INTEGER NOT NULL, -- 0: of limiters
  token   TEXT    NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (lock, token)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ended_by_expiry ON ended (expires);

-- Limiters. Their times are microseconds of wall time, as on a server: a limit per day outlives a reboot.
CREATE TABLE IF NOT EXISTS limiter (
  id    INTEGER PRIMARY KEY,
  key   TEXT    NOT NULL UNIQUE,    -- kind and key
  at    INTEGER NOT NULL,           -- gcra: until when it is used up. fixed-window: the beginning of the last window, plus
                                    -- how many were taken of it. sliding-window: when the last were taken
  total INTEGER NOT NULL DEFAULT 0, -- sliding-window: how many were taken since the row is there
  token TEXT,                       -- if the last take is a reservation: whose
  ends  INTEGER NOT NULL            -- it means nothing any more
);
CREATE INDEX IF NOT EXISTS limiter_by_end ON limiter (ends);
-- When some of a sliding window were taken, and how many were until then.
CREATE TABLE IF NOT EXISTS limiter_take (
  limiter INTEGER NOT NULL,
  total   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (limiter, total)
) WITHOUT ROWID;

-- Which boot the times of claims, idle consumers and calls belong to. Not the column of store: a library of
-- version 1, which knows no queues, may be the first to use the file after a reboot.
CREATE TABLE IF NOT EXISTS queue_boot (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  boot TEXT    NOT NULL
);

-- One row per queue. A setting that is NULL has its default. The counts of tasks are kept here, since
-- counting a million rows takes SQLite tens of milliseconds; every verb reads and writes this row anyway.
CREATE TABLE IF NOT EXISTS queue (
  id         INTEGER PRIMARY KEY,
  key        TEXT    NOT NULL UNIQUE,
  used       INTEGER NOT NULL,           -- wall time in milliseconds, renewed once an hour
  counter    INTEGER NOT NULL DEFAULT 0, -- the last version or receipt
  sequence   INTEGER NOT NULL DEFAULT 0, -- orders tasks that became ready
  paused     INTEGER NOT NULL DEFAULT 0,
  max_len    INTEGER,
  dead_max   INTEGER,
  dead_age   INTEGER,                    -- milliseconds
  dead_bytes INTEGER,
  intake     INTEGER,                    -- means nothing here
  scheduled  INTEGER NOT NULL DEFAULT 0,
  ready      INTEGER NOT NULL DEFAULT 0,
  claimed    INTEGER NOT NULL DEFAULT 0,
  parked     INTEGER NOT NULL DEFAULT 0,
  dead       INTEGER NOT NULL DEFAULT 0, -- of dead tasks, those that failed
  dead_size  INTEGER NOT NULL DEFAULT 0, -- bytes of their bodies
  enqueued   INTEGER NOT NULL DEFAULT 0,
  acked      INTEGER NOT NULL DEFAULT 0,
  retried    INTEGER NOT NULL DEFAULT 0,
  died       INTEGER NOT NULL DEFAULT 0,
  purged     INTEGER NOT NULL DEFAULT 0, -- the row that has what a purge dropped, as long as it has any; 0: none
  expired        INTEGER NOT NULL DEFAULT 0, -- as dead, of those that were not delivered in time. Version 6
  expired_size   INTEGER NOT NULL DEFAULT 0, -- as dead_size
  results        INTEGER NOT NULL DEFAULT 0, -- of the results that are kept, as dead. Version 10
  results_size   INTEGER NOT NULL DEFAULT 0, -- as dead_size
  asked_until    INTEGER NOT NULL DEFAULT 0, -- boot clock: somebody may wait for the end of a task, or for an event
  events         INTEGER NOT NULL DEFAULT 0, -- how many are kept. Version 11
  last_event     INTEGER NOT NULL DEFAULT 0, -- its number
  held           INTEGER NOT NULL DEFAULT 0, -- as scheduled; they are counted in parked, too. Version 12
  limited        INTEGER NOT NULL DEFAULT 0, -- 1: it had tasks with keys; 2: it has limits
  flows          INTEGER NOT NULL DEFAULT 0, -- that have begun and not ended. Version 14
  flows_ended    INTEGER NOT NULL DEFAULT 0,
  flows_dropped  INTEGER NOT NULL DEFAULT 0, -- those of which nodes are left
  flows_look     INTEGER NOT NULL DEFAULT 0, -- when one of them is over its age, milliseconds; 0: never
  walk_at        INTEGER NOT NULL DEFAULT 0, -- when one is looked after
  walked         INTEGER NOT NULL DEFAULT 0, -- which was
  messages       INTEGER NOT NULL DEFAULT 0, -- how many the outbox has
  last_message   INTEGER NOT NULL DEFAULT 0, -- its number
  last_step      INTEGER NOT NULL DEFAULT 0 -- when somebody has stepped, milliseconds
);
CREATE INDEX IF NOT EXISTS queue_by_use ON queue (used);

-- Live tasks: of each id a main one, and perhaps a successor. Dues and expiries are milliseconds of wall
-- time. The index of each state has the tasks of that state alone, so that the first one is found in the
-- same time whatever else there is.
CREATE TABLE IF NOT EXISTS task (
  serial       INTEGER PRIMARY KEY,
  queue        INTEGER NOT NULL,
  id           TEXT    NOT NULL,
  parked       INTEGER NOT NULL, -- 1: it is a successor. Not told by the state, which changes: the index would too
  state        INTEGER NOT NULL, -- 0 scheduled, 1 ready, 2 claimed, 3 parked; also of a main one that a limit of its key holds (version 12)
  turn         INTEGER NOT NULL, -- of a ready task: lower ones first; of a claimed one: what it had
  ends         INTEGER NOT NULL, -- of a claimed task: end of its lease, microseconds of the boot clock
  version      INTEGER NOT NULL,
  due          INTEGER NOT NULL,
  priority     INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  first        INTEGER NOT NULL,
  expires      INTEGER NOT NULL, -- 0: never
  receipt      INTEGER NOT NULL, -- the delivery that is not settled; 0: none
  settled      INTEGER NOT NULL, -- the last receipt that was settled; 0: none
  verdict      INTEGER NOT NULL, -- how: 1 ack, 2 nack, 3 bury, 4 put_back; 0: otherwise
  replaces     INTEGER NOT NULL, -- of a successor: 0 it waits until the run ends, 1 it takes a retry's place, 2 so by debounce, 3 with main's body
  reason       TEXT    NOT NULL,
  body         BLOB    NOT NULL,
  backoff      INTEGER NOT NULL DEFAULT 0, -- until when no enqueue brings the retry forward; 0: it is none. Version 5
  consumer     TEXT    NOT NULL DEFAULT '', -- who claimed it last; empty: nobody. Version 7
  history      TEXT    NOT NULL DEFAULT '', -- the last failures as JSON, [[milliseconds of wall time, reason], ...]. Version 10
  cancelled    INTEGER NOT NULL DEFAULT 0, -- 1: its run is its last
  progress     BLOB    NOT NULL DEFAULT x'', -- what its run has said of itself
  key          TEXT    NOT NULL DEFAULT '', -- whose limits it has; empty: nobody's. Version 12
  node         TEXT    NOT NULL DEFAULT '' -- which one of which flow it is; empty: none. Version 14
);
CREATE UNIQUE INDEX IF NOT EXISTS task_by_id ON task (queue, id, parked);
CREATE INDEX IF NOT EXISTS task_scheduled ON task (queue, due) WHERE state = 0;
CREATE INDEX IF NOT EXISTS task_ready ON task (queue, turn) WHERE state = 1;
CREATE INDEX IF NOT EXISTS task_claimed ON task (queue, ends) WHERE state = 2;

-- Dead tasks under the receipt of the delivery that was their last.
CREATE TABLE IF NOT EXISTS dead (
  serial       INTEGER PRIMARY KEY,
  queue        INTEGER NOT NULL,
  receipt      INTEGER NOT NULL,
  id           TEXT    NOT NULL,
  died         INTEGER NOT NULL, -- wall time in milliseconds
  by_lease     INTEGER NOT NULL, -- 1: the end of its lease killed it
  version      INTEGER NOT NULL,
  due          INTEGER NOT NULL,
  priority     INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  first        INTEGER NOT NULL,
  expires      INTEGER NOT NULL,
  verdict      INTEGER NOT NULL, -- which settlement killed it; 0: none
  reason       TEXT    NOT NULL,
  body         BLOB    NOT NULL,
  expired      INTEGER NOT NULL DEFAULT 0, -- 1: it was not delivered in time. Version 6
  consumer     TEXT    NOT NULL DEFAULT '', -- as in task; so are the others
  history      TEXT    NOT NULL DEFAULT '',
  key          TEXT    NOT NULL DEFAULT '',
  node         TEXT    NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX IF NOT EXISTS dead_by_id ON dead (queue, id, receipt);

-- Until when an id's next enqueue with throttle is refused, in milliseconds of wall time.
CREATE TABLE IF NOT EXISTS throttle (
  queue INTEGER NOT NULL,
  id    TEXT    NOT NULL,
  ends  INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS throttle_by_end ON throttle (ends);

-- Consumers that wait, until when (boot clock) they count as alive. One that was chosen to be woken is no
-- longer idle; it stays here until it asks, so that its process finds the hint.
CREATE TABLE IF NOT EXISTS idle (
  queue  INTEGER NOT NULL,
  client INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  chosen INTEGER NOT NULL,
  consumer TEXT    NOT NULL DEFAULT '', -- who that is. Version 7
  PRIMARY KEY (queue, client, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idle_in_line ON idle (queue, until) WHERE chosen = 0;
CREATE INDEX IF NOT EXISTS idle_chosen ON idle (client) WHERE chosen = 1;
CREATE INDEX IF NOT EXISTS idle_by_end ON idle (until);

-- The last call of each slot of each client, and its reply, kept until a time of the boot clock.
CREATE TABLE IF NOT EXISTS call (
  queue   INTEGER NOT NULL,
  client  INTEGER NOT NULL,
  slot    INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  reply   BLOB    NOT NULL,
  PRIMARY KEY (queue, client, slot)
) WITHOUT ROWID;

-- Results of tasks, one of each id.
CREATE TABLE IF NOT EXISTS result (
  queue   INTEGER NOT NULL,
  id      TEXT    NOT NULL,
  version INTEGER NOT NULL,
  ends    INTEGER NOT NULL, -- milliseconds of wall time
  body    BLOB    NOT NULL,
  PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS result_by_end ON result (queue, ends);

-- What happened to tasks of late, of queues that keep it. They are found by the queue's key, which a purge leaves as it is.
CREATE TABLE IF NOT EXISTS event (
  queue   TEXT    NOT NULL,
  number  INTEGER NOT NULL,
  at      INTEGER NOT NULL, -- milliseconds of wall time
  what    INTEGER NOT NULL, -- 1 added, 2 started, 3 progress, 4 done, 5 failed, 6 dead, 7 cancelled, 8 removed, 9 put_back
  id      TEXT    NOT NULL,
  version INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  reason  TEXT    NOT NULL,
  PRIMARY KEY (queue, number)
) WITHOUT ROWID;
-- A library of an earlier version, which knows no events, may be the one that forgets a queue.
CREATE TRIGGER IF NOT EXISTS forget_events AFTER DELETE ON queue BEGIN
  DELETE FROM event WHERE queue = old.key;
END;

-- Callers that wait for the end of a task, or of no task for an event, until when (boot clock) they count as alive. One that is told is marked, and
-- stays until it asks, so that its process finds the hint.
CREATE TABLE IF NOT EXISTS asker (
  queue  INTEGER NOT NULL,
  id     TEXT    NOT NULL,
  client INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  chosen INTEGER NOT NULL,
  PRIMARY KEY (queue, id, client, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS asker_chosen ON asker (client) WHERE chosen = 1;
CREATE INDEX IF NOT EXISTS asker_by_end ON asker (until);

-- What queues let go and run at most, as JSON, of those that have limits, or had tasks with keys. Found by the queue's key, as
-- the limits that its keys have of their own.
CREATE TABLE IF NOT EXISTS queue_limit (
  queue  TEXT NOT NULL PRIMARY KEY,
  limits TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS key_limit (
  queue       TEXT    NOT NULL,
  key         TEXT    NOT NULL,
  concurrency INTEGER,          -- NULL: as the queue has it; the same of rate_count
  rate_count  INTEGER,
  rate_per    INTEGER NOT NULL, -- milliseconds
  rate_burst  INTEGER NOT NULL,
  weight      INTEGER NOT NULL,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS forget_limits AFTER DELETE ON queue BEGIN
  DELETE FROM queue_limit WHERE queue = old.key;
  DELETE FROM key_limit WHERE queue = old.key;
END;

-- Keys of tasks of which nothing goes before a time.
CREATE TABLE IF NOT EXISTS key_time (
  queue   INTEGER NOT NULL,
  key     TEXT    NOT NULL,
  tat     INTEGER NOT NULL, -- when its next delivery would be due by its rate, in quarters of microseconds of wall time
  until   INTEGER NOT NULL, -- nothing of it goes before, in milliseconds of wall time
  looks   INTEGER,          -- when more of it may come into line, milliseconds; NULL: not by time
  forgets INTEGER,          -- when this row says nothing any more; NULL: it has tasks
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS key_time_looks ON key_time (queue, looks, key) WHERE looks IS NOT NULL;
CREATE INDEX IF NOT EXISTS key_time_forgets ON key_time (queue, forgets, key) WHERE forgets IS NOT NULL;

-- Schedules. They are found by the queue's key, which a purge leaves as it is.
CREATE TABLE IF NOT EXISTS schedule (
  serial       INTEGER PRIMARY KEY,
  queue        TEXT    NOT NULL,
  id           TEXT    NOT NULL,
  version      INTEGER NOT NULL, -- another one whenever it changes
  timing       TEXT    NOT NULL, -- when its slots are: clients read it
  missed       TEXT    NOT NULL, -- what becomes of missed slots: the same
  overlap      INTEGER NOT NULL, -- 1: a slot is skipped while the task of the one before lives
  paused       INTEGER NOT NULL,
  cursor       INTEGER NOT NULL, -- the last slot that was seen to, in milliseconds of wall time
  fresh        INTEGER NOT NULL, -- 1: slots up to now are not meant
  due          INTEGER NOT NULL, -- of its next slot; 2^52: none comes
  owner        TEXT    NOT NULL, -- whose list it is in; empty: nobody's
  fired        INTEGER NOT NULL,
  skipped      INTEGER NOT NULL,
  missed_slots INTEGER NOT NULL,
  last_task    TEXT    NOT NULL,
  priority     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  expires      INTEGER NOT NULL, -- milliseconds after it is made; 0: never
  body         BLOB    NOT NULL,
  key          TEXT    NOT NULL DEFAULT '' -- whose limits its tasks have; empty: nobody's. Version 12
);
CREATE UNIQUE INDEX IF NOT EXISTS schedule_by_id ON schedule (queue, id);
CREATE INDEX IF NOT EXISTS schedule_by_due ON schedule (queue, due, id);

-- The generation of an owner's list of schedules.
CREATE TABLE IF NOT EXISTS schedule_owner (
  queue      TEXT    NOT NULL,
  owner      TEXT    NOT NULL,
  generation INTEGER NOT NULL,
  PRIMARY KEY (queue, owner)
) WITHOUT ROWID;

-- Flows. They are found by the queue's number, so that a purge leaves them with the tasks. What a step writes is apart from
-- what it does not, and from what is large.
CREATE TABLE IF NOT EXISTS flow (
  serial  INTEGER PRIMARY KEY, -- in the order in which they came
  queue   INTEGER NOT NULL,
  id      TEXT    NOT NULL,    -- of one that was dropped: none that a flow can have
  state   INTEGER NOT NULL,    -- 0 its parts are coming, 1 begun, 2 ended, 3 dropped: its nodes go a few at a time
  token   INTEGER NOT NULL,    -- of the last call that put nodes in
  version INTEGER NOT NULL,
  created INTEGER NOT NULL,    -- milliseconds of wall time
  ended   INTEGER NOT NULL,    -- the same; 0: it has not
  nodes   INTEGER NOT NULL,    -- how many
  results INTEGER NOT NULL,    -- bytes of their results
  summary TEXT    NOT NULL,
  states  BLOB    NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS flow_by_id ON flow (queue, id);
CREATE INDEX IF NOT EXISTS flow_coming ON flow (queue, created) WHERE state = 0;
CREATE INDEX IF NOT EXISTS flow_begun ON flow (queue, created, id) WHERE state = 1;
CREATE INDEX IF NOT EXISTS flow_in_turn ON flow (queue, serial) WHERE state = 1;
CREATE INDEX IF NOT EXISTS flow_ended ON flow (queue, ended, id) WHERE state = 2;
CREATE INDEX IF NOT EXISTS flow_dropped ON flow (queue) WHERE state = 3;
CREATE TABLE IF NOT EXISTS flow_plan (
  flow  INTEGER PRIMARY KEY,
  graph BLOB NOT NULL,
  names BLOB NOT NULL
);
CREATE TRIGGER IF NOT EXISTS forget_plan AFTER DELETE ON flow BEGIN
  DELETE FROM flow_plan WHERE flow = old.serial;
END;

-- Nodes of flows, as they are put into their queues.
CREATE TABLE IF NOT EXISTS flow_node (
  serial       INTEGER PRIMARY KEY,
  queue        INTEGER NOT NULL,
  flow         INTEGER NOT NULL,
  node         INTEGER NOT NULL,
  name         TEXT    NOT NULL,
  home         TEXT    NOT NULL, -- the name of the task's queue; empty: the flow's
  due_kind     INTEGER NOT NULL, -- 0 at once, 1 so many milliseconds after it is put in, 2 at this time
  due          INTEGER NOT NULL,
  priority     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  expires      INTEGER NOT NULL, -- milliseconds after it is put in; 0: never
  key          TEXT    NOT NULL,
  body         BLOB    NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS flow_node_by_number ON flow_node (queue, flow, node);

-- What came of nodes.
CREATE TABLE IF NOT EXISTS flow_result (
  serial INTEGER PRIMARY KEY,
  queue  INTEGER NOT NULL,
  flow   INTEGER NOT NULL,
  node   INTEGER NOT NULL,
  body   BLOB    NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS flow_result_by_node ON flow_result (queue, flow, node);

-- How tasks that are nodes ended, until a step has worked it off. Numbers have no gaps.
CREATE TABLE IF NOT EXISTS outbox (
  serial  INTEGER PRIMARY KEY,
  queue   INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  event   INTEGER NOT NULL, -- 1 the flow begins, 2 done, 3 dead, 4 cancelled, 5 lost, 6 cancel the flow, 7 try it again, 8 placed
  mark    TEXT    NOT NULL, -- as node in task
  retries INTEGER NOT NULL,
  body    BLOB              -- the result; NULL: there is none
);
CREATE UNIQUE INDEX IF NOT EXISTS outbox_by_number ON outbox (queue, number);

-- The last number that came from the outbox of another queue.
CREATE TABLE IF NOT EXISTS outbox_source (
  queue  INTEGER NOT NULL,
  source TEXT    NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (queue, source)
) WITHOUT ROWID;
-- A library of an earlier version, which knows no flows, may be the one that drops a queue's row.
CREATE TRIGGER IF NOT EXISTS forget_flows AFTER DELETE ON queue BEGIN
  DELETE FROM flow WHERE queue = old.id;
  DELETE FROM flow_node WHERE queue = old.id;
  DELETE FROM flow_result WHERE queue = old.id;
  DELETE FROM outbox WHERE queue = old.id;
  DELETE FROM outbox_source WHERE queue = old.id;
END;
