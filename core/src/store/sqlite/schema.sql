-- Version 1. Later versions only add (tables, indexes, columns with a default), so that an older library
-- works on a newer file. Times of leases and waiters are microseconds of the boot clock.

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
  used        INTEGER NOT NULL            -- wall time in milliseconds, renewed once an hour
);
CREATE INDEX IF NOT EXISTS lock_by_use ON lock (used);

-- The waiting lines, in order of arrival.
CREATE TABLE IF NOT EXISTS waiter (
  lock    INTEGER NOT NULL,
  arrival INTEGER NOT NULL,
  token   TEXT    NOT NULL,
  polled  INTEGER NOT NULL,
  offered INTEGER NOT NULL,
  client  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  PRIMARY KEY (lock, arrival)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS waiter_by_token ON waiter (lock, token);
CREATE INDEX IF NOT EXISTS waiter_by_poll ON waiter (polled);
CREATE INDEX IF NOT EXISTS waiter_by_offer ON waiter (client) WHERE offered = 1;

-- Tokens whose wait or lease has ended, so that a late copy of their acquire changes nothing.
CREATE TABLE IF NOT EXISTS ended (
  lock    INTEGER NOT NULL,
  token   TEXT    NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (lock, token)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ended_by_expiry ON ended (expires);
