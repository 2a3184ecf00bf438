//! What every verb's transaction works with: the connection, the time, and the lock's row.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use crate::protocol::{Absence, ENDED_TTL, Fence, LINE_TTL, META_REFRESH, Reply, WAITER_LIVE, Waiter};
use crate::store::sqlite::numbers::number;

/// What tokens of limiters have in the place of a lock's number, which is larger.
pub(super) const LIMITERS: i64 = 0;
/// How many leftovers of each kind one verb clears away: more than it can add.
pub(super) const CLEAN_UP: i64 = 4;
/// How many rows one page of a listing looks at.
pub(super) const PAGE: usize = 1_000;

/// A verb's outcome: the reply, and the waiters to hint once it is committed.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) reply: Reply,
    pub(super) wake: Vec<Waiter>,
}

impl From<Reply> for Performed {
    fn from(reply: Reply) -> Self {
        Self { reply, wake: Vec::new() }
    }
}

/// One verb's work within its transaction.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) connection: &'a Connection,
    /// The boot clock in microseconds.
    pub(super) now: i64,
    /// Wall time in microseconds.
    pub(super) wall: i64,
    /// How long a lock's row outlives its last lease.
    pub(super) margin: Duration,
}

/// When, and in which boot, something is read outside of a transaction.
pub(super) struct View<'a> {
    /// The boot clock in microseconds.
    pub(super) now: i64,
    /// Wall time in microseconds.
    pub(super) wall: i64,
    pub(super) boot: &'a str,
}

/// A lock's row.
pub(super) struct LockRow {
    pub(super) id: i64,
    token: Option<Box<str>>,
    pub(super) expires: i64,
    pub(super) fence: Fence,
    pub(super) born: Fence,
    pub(super) broken: Fence,
    pub(super) ended_until: i64,
    used: i64,
    /// Whether anybody is in line.
    pub(super) crowded: bool,
    /// Of a semaphore in use: how many permits it has.
    pub(super) permits: i64,
    /// The next fence is larger than this, too.
    floor: Fence,
}

impl LockRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            token: row.get(1)?,
            expires: row.get(2)?,
            fence: row.get(3)?,
            born: row.get(4)?,
            broken: row.get(5)?,
            ended_until: row.get(6)?,
            used: row.get(7)?,
            crowded: row.get(8)?,
            permits: row.get(9)?,
            floor: row.get(10)?,
        })
    }
}

impl Step<'_> {
    /// The row of the lock with this key.
    pub(super) fn lock(&self, key: &str) -> rusqlite::Result<Option<LockRow>> {
        self.connection
            .prepare_cached(
                "SELECT id, token, expires, fence, born, broken, ended_until, used,
                   EXISTS (SELECT 1 FROM waiter WHERE waiter.lock = lock.id), permits, floor
                 FROM lock WHERE key = ?1",
            )?
            .query_row([key], LockRow::read)
            .optional()
    }

    /// What the key holds now: a token, or the cooldown marker.
    pub(super) fn value<'row>(&self, row: &'row LockRow) -> Option<&'row str> {
        row.token.as_deref().filter(|_| row.expires > self.now)
    }

    /// The fence of a new grant.
    pub(super) fn next_fence(&self, row: &LockRow, least: Fence) -> Fence {
        row.fence.max(row.floor).next().max(self.wall_fence()).max(least)
    }

    /// The least fence that a lock without a record gets now.
    pub(super) fn wall_fence(&self) -> Fence {
        Fence::new(number(self.wall))
    }

    /// Runs a statement that changes rows; answers how many.
    pub(super) fn change(&self, sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(values)
    }

    /// Makes the key hold `token` until `expires`.
    pub(super) fn set(&self, row: &LockRow, token: &str, expires: i64) -> rusqlite::Result<()> {
        self.change("UPDATE lock SET token = ?2, expires = ?3 WHERE id = ?1", &[&row.id, &token, &expires])?;
        Ok(())
    }

    /// Makes the key free.
    pub(super) fn clear(&self, row: &LockRow) -> rusqlite::Result<()> {
        self.change("UPDATE lock SET token = NULL, expires = 0 WHERE id = ?1", &[&row.id])?;
        Ok(())
    }

    /// Removes a token's place in the line; whether it had one.
    pub(super) fn leave_line(&self, lock: i64, token: &str) -> rusqlite::Result<bool> {
        let left = self.change("DELETE FROM waiter WHERE lock = ?1 AND token = ?2", &[&lock, &token])?;
        Ok(left > 0)
    }

    /// Renews the life of the lock's row: once a minute, which saves most of the index updates.
    pub(super) fn touch(&self, row: &LockRow) -> rusqlite::Result<()> {
        let now = self.wall / 1_000;
        if row.used.saturating_add(millis(META_REFRESH)) <= now {
            self.change("UPDATE lock SET used = ?2 WHERE id = ?1", &[&row.id, &now])?;
        }
        Ok(())
    }

    /// Makes a row for a lock that has none, and clears away a few leftovers of others.
    pub(super) fn create(&self, key: &str) -> rusqlite::Result<LockRow> {
        self.clean_locks()?;
        self.clean_line()?;
        let used = self.wall / 1_000;
        let id = self
            .connection
            .prepare_cached("INSERT INTO lock (key, used) VALUES (?1, ?2)")?
            .insert((key, used))?;
        Ok(LockRow {
            id,
            token: None,
            expires: 0,
            fence: Fence::NONE,
            born: Fence::NONE,
            broken: Fence::NONE,
            ended_until: 0,
            used,
            crowded: false,
            permits: 0,
            floor: Fence::NONE,
        })
    }

    /// Whether this token was ended a short time ago.
    pub(super) fn has_ended(&self, row: &LockRow, token: &str) -> rusqlite::Result<bool> {
        if row.ended_until <= self.now {
            return Ok(false);
        }
        self.is_ended(row.id, token)
    }

    /// The same of a lock's number, or of [`LIMITERS`].
    pub(super) fn is_ended(&self, lock: i64, token: &str) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM ended WHERE lock = ?1 AND token = ?2 AND expires > ?3")?
            .exists((lock, token, self.now))
    }

    /// Remembers the token as ended, so that a late copy of its acquire changes nothing.
    pub(super) fn end_token(&self, row: &LockRow, token: &str) -> rusqlite::Result<()> {
        self.clean_line()?;
        let until = self.note_ended(row.id, token)?;
        self.change("UPDATE lock SET ended_until = ?2 WHERE id = ?1", &[&row.id, &until])?;
        self.touch(row)
    }

    /// Notes that a token of a lock, or of [`LIMITERS`], has ended; until when that is remembered.
    pub(super) fn note_ended(&self, lock: i64, token: &str) -> rusqlite::Result<i64> {
        let until = self.now.saturating_add(micros(ENDED_TTL));
        self.clean_ended()?;
        self.change(
            "INSERT INTO ended (lock, token, expires) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET expires = excluded.expires",
            &[&lock, &token, &until],
        )?;
        Ok(until)
    }

    /// Forgets ended tokens whose time is over, of any lock.
    fn clean_ended(&self) -> rusqlite::Result<()> {
        let over: Vec<(i64, Box<str>)> = self.few(
            "SELECT lock, token FROM ended WHERE expires <= ?1 ORDER BY expires LIMIT ?2",
            &[&self.now, &CLEAN_UP],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (lock, token) in over {
            self.change("DELETE FROM ended WHERE lock = ?1 AND token = ?2", &[&lock, &token])?;
        }
        Ok(())
    }

    /// Drops waiters that stopped polling long ago, of any lock.
    fn clean_line(&self) -> rusqlite::Result<()> {
        let before = self.now.saturating_sub(micros(LINE_TTL));
        let dead: Vec<(i64, i64)> = self.few(
            "SELECT lock, arrival FROM waiter WHERE polled <= ?1 ORDER BY polled LIMIT ?2",
            &[&before, &CLEAN_UP],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (lock, arrival) in dead {
            self.change("DELETE FROM waiter WHERE lock = ?1 AND arrival = ?2", &[&lock, &arrival])?;
        }
        Ok(())
    }

    /// Drops the rows of locks whose last lease is over for longer than clocks may go back, with their dead waiters.
    fn clean_locks(&self) -> rusqlite::Result<()> {
        let unused_since = self.wall / 1_000 - millis(self.margin + META_REFRESH);
        let over_since = self.now.saturating_sub(micros(self.margin));
        let stale: Vec<i64> = self.few(
            "SELECT id FROM lock WHERE used <= ?1 AND expires <= ?2
               AND NOT EXISTS (SELECT 1 FROM waiter WHERE waiter.lock = lock.id AND polled > ?3)
               AND NOT EXISTS (SELECT 1 FROM permit WHERE permit.lock = lock.id AND permit.expires > ?2)
               AND NOT EXISTS (SELECT 1 FROM cached WHERE cached.lock = lock.id AND cached.ends > ?2)
             ORDER BY used LIMIT ?4",
            &[&unused_since, &over_since, &dead_before(self.now), &CLEAN_UP],
            |row| row.get(0),
        )?;
        for id in stale {
            self.change("DELETE FROM waiter WHERE lock = ?1", &[&id])?;
            self.change("DELETE FROM ended WHERE lock = ?1", &[&id])?;
            self.change("DELETE FROM lock WHERE id = ?1", &[&id])?;
        }
        Ok(())
    }

    /// The rows of a query that has few.
    pub(super) fn few<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map(values, read)?.collect()
    }
}

/// What is known about a lock whose key does not hold the caller's token. No other program locks here,
/// so nothing is ever foreign.
pub(super) fn absence(row: Option<&LockRow>) -> Absence {
    row.map_or_else(Absence::default, |row| Absence {
        fence: row.fence,
        born: row.born,
        broken: row.broken,
        foreign: false,
    })
}

/// A time as it is stored: whole microseconds.
pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Whoever waits and polled no later than this is dead.
pub(super) fn dead_before(now: i64) -> i64 {
    now.saturating_sub(micros(WAITER_LIVE))
}

/// What lies between two stored times; zero if they are in the other order.
pub(super) fn between(earlier: i64, later: i64) -> Duration {
    Duration::from_micros(u64::try_from(later.saturating_sub(earlier)).unwrap_or(0))
}

/// A time as it is stored where wall time is meant: whole milliseconds.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
