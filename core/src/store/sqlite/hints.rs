//! Hints from other processes: the file is looked at often, and read when another process has written.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::protocol::{ClientId, Failure};
use crate::store::Hints;
use crate::store::sqlite::bell::Bell;
use crate::store::sqlite::connection::side_file;
use crate::store::sqlite::database::Handle;
use crate::store::sqlite::failure::{Trouble, sqlite};
use crate::store::sqlite::watch::Watch;

/// How often the file is looked at while other processes write. A look costs some microseconds.
const BRISK: Duration = Duration::from_millis(1);
/// How often when they do not, where nobody tells of writes: what a hint may be late.
const CALM: Duration = Duration::from_millis(25);
/// There, a file that nobody else wrote to for this long is quiet, and the looks slow down step by step.
const QUIET_AFTER: Duration = Duration::from_millis(100);
/// How often where somebody tells of writes and nobody writes: the file may have been replaced.
const ASLEEP: Duration = Duration::from_secs(1);

/// Where hints for one client's waiters come from. Hints within the process do not pass through here.
pub(super) struct FileHints {
    database: Handle,
    client: ClientId,
    bell: Arc<Bell>,
    /// The connection and the version that the last look saw.
    seen: Option<(u64, i64)>,
    /// The offers delivered so far that still stand: number and last poll, which every new offer changes.
    delivered: Vec<(u64, i64)>,
    changed_at: Instant,
    looked_at: Option<Instant>,
    /// So long after the last look the next one comes, told or not.
    pace: Duration,
    /// Whether a write was told of since the last look.
    is_told: bool,
    watch: Option<Watch>,
}

impl FileHints {
    /// Begins to look, with whatever is offered already.
    pub(super) fn open(database: Handle, client: ClientId, bell: Arc<Bell>) -> Self {
        Self {
            database,
            client,
            bell,
            seen: None,
            delivered: Vec::new(),
            changed_at: Instant::now(),
            looked_at: None,
            pace: BRISK,
            is_told: false,
            watch: None,
        }
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&mut self) -> bool {
        let Some(waited) = self.looked_at.map(|looked_at| looked_at.elapsed()) else { return true };
        if mem::take(&mut self.is_told) {
            // The commit may be yet to come, but not for long.
            self.pace = BRISK;
            return true;
        }
        if waited < self.pace {
            return false;
        }
        if self.changed_at.elapsed() >= QUIET_AFTER {
            self.pace = match self.pace < CALM {
                true => (self.pace * 2).min(CALM),
                // First it has itself told, then it looks.
                false if self.is_to_be_told() => (self.pace * 2).min(ASLEEP),
                false => CALM,
            };
        }
        true
    }

    /// Sees to it that the next write is told of, if that can be had. While others write it is not: a write is told of
    /// before its commit can be seen, to all who wait at once, and at the writer's cost.
    fn is_to_be_told(&mut self) -> bool {
        let Some(file) = self.database.path() else { return false };
        if self.watch.is_none() {
            self.watch = Watch::open();
            if let Some(watch) = &self.watch {
                self.bell.heard_by(watch.ear());
            }
        }
        self.watch.as_ref().is_some_and(|watch| watch.watch(&side_file(file, "-wal")))
    }

    /// Whether only a write, or a long time, makes it look.
    #[cfg(test)]
    pub(super) fn is_asleep(&self) -> bool {
        self.pace == ASLEEP && self.looked_at.is_some_and(|looked_at| looked_at.elapsed() < ASLEEP / 2)
    }

    /// Sleeps until the next look may be due; whether the bell was rung.
    pub(super) fn nap(&mut self, left: Duration) -> bool {
        let waited = self.looked_at.map_or(self.pace, |looked_at| looked_at.elapsed());
        let nap = self.pace.saturating_sub(waited).min(left);
        let listens = self.pace > CALM;
        let Some(watch) = self.watch.as_ref().filter(|_| listens) else { return self.bell.wait(nap) };
        let is_rung = self.bell.wait(Duration::ZERO);
        if !is_rung {
            self.is_told = watch.sleep(nap);
        }
        is_rung || self.bell.wait(Duration::ZERO)
    }

    /// Reads the offers if another process has written since the last look; whether one is new.
    fn look(&mut self, deliver: &mut dyn FnMut(u64)) -> Result<bool, Failure> {
        self.looked_at = Some(Instant::now());
        let Self { database, client, seen, .. } = self;
        let offers = database.with(false, |database, open| {
            let wrong = |error| sqlite(&error, database.label());
            // Commits of the same connection, so of this process, do not change its version.
            let version = Some((open.epoch, data_version(&open.connection).map_err(wrong)?));
            if version == *seen {
                return Ok(None);
            }
            let offers = offers(&open.connection, *client).map_err(wrong)?;
            *seen = version;
            Ok(Some(offers))
        });
        let offers = match offers {
            Ok(Some(offers)) => offers,
            // Busy happens while another process recovers the log; the next look is soon enough.
            Ok(None) | Err(Trouble::Busy) => return Ok(false),
            Err(Trouble::Failed(failure)) => return Err(failure),
        };
        self.pace = BRISK;
        self.changed_at = Instant::now();
        let mut any = false;
        for offer in &offers {
            if !self.delivered.contains(offer) {
                any = true;
                deliver(offer.0);
            }
        }
        self.delivered = offers;
        Ok(any)
    }
}

impl Hints for FileHints {
    fn read(&mut self, patience: Duration, deliver: &mut dyn FnMut(u64)) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            if self.is_due() && self.look(deliver)? {
                return Ok(());
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() || self.nap(left) {
                return Ok(());
            }
        }
    }
}

/// A number that changes when another connection has written.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// Number and last poll of each of the client's waiters that is offered a lock, is to ask for one, was chosen to
/// claim, or is told of a task's end.
fn offers(connection: &Connection, client: ClientId) -> rusqlite::Result<Vec<(u64, i64)>> {
    connection
        .prepare_cached(
            "SELECT seq, polled FROM waiter WHERE client = ?1 AND offered = 1
             UNION ALL SELECT seq, polled FROM waiter WHERE client = ?1 AND offered = 2
             UNION ALL SELECT seq, until FROM idle WHERE client = ?1 AND chosen = 1
             UNION ALL SELECT seq, until FROM asker WHERE client = ?1 AND chosen = 1",
        )?
        .query_map([client.0.cast_signed()], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))?
        .collect()
}
