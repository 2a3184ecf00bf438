//! Hints from other processes: the file is looked at often, and read when another process has written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::protocol::{ClientId, Failure};
use crate::store::Hints;
use crate::store::sqlite::database::{Bell, Handle};
use crate::store::sqlite::failure::{Trouble, sqlite};

/// How often the file is looked at while other processes write. A look costs some microseconds.
const BRISK: Duration = Duration::from_millis(1);
/// How often at the least: what a hint after a quiet time may be late.
const CALM: Duration = Duration::from_millis(25);
/// A file that nobody else wrote to for this long is quiet; then the looks slow down step by step.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// Where hints for one client's waiters come from. Hints within the process do not pass through here.
pub(super) struct FileHints {
    database: Handle,
    client: ClientId,
    bell: Arc<Bell>,
    /// The connection and the version that the last look saw.
    seen: Option<(u64, i64)>,
    /// The offers delivered so far that still stand: number and last poll, which every new offer changes.
    delivered: Vec<(u64, i64)>,
    pace: Duration,
    changed_at: Instant,
}

impl FileHints {
    /// Begins to look, with whatever is offered already.
    pub(super) fn open(database: Handle, client: ClientId, bell: Arc<Bell>) -> Self {
        let (seen, delivered) = (None, Vec::new());
        Self { database, client, bell, seen, delivered, pace: BRISK, changed_at: Instant::now() }
    }

    /// Reads the offers if another process has written since the last look; whether one is new.
    fn look(&mut self, deliver: &mut dyn FnMut(u64)) -> Result<bool, Failure> {
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
            if self.look(deliver)? {
                return Ok(());
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() || self.bell.wait(left.min(self.pace)) {
                return Ok(());
            }
            if self.changed_at.elapsed() >= QUIET_AFTER {
                self.pace = (self.pace * 2).min(CALM);
            }
        }
    }
}

/// A number that changes when another connection has written.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// Number and last poll of each of the client's waiters that is offered a lock, is to ask for one, or was chosen to
/// claim.
fn offers(connection: &Connection, client: ClientId) -> rusqlite::Result<Vec<(u64, i64)>> {
    connection
        .prepare_cached(
            "SELECT seq, polled FROM waiter WHERE client = ?1 AND offered = 1
             UNION ALL SELECT seq, polled FROM waiter WHERE client = ?1 AND offered = 2
             UNION ALL SELECT seq, until FROM idle WHERE client = ?1 AND chosen = 1",
        )?
        .query_map([client.0.cast_signed()], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))?
        .collect()
}
