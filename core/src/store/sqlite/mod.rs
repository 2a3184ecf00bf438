//! An embedded store: one SQLite file for all processes of a machine, or memory for one process.
//!
//! Every verb is one transaction that does what the Lua script of the same name does on Redis. Leases
//! end on the boot clock, so they outlive no reboot; fences do.

mod acquire;
mod acquire_all;
mod bell;
mod break_lease;
mod cached;
mod connection;
mod database;
mod doctor;
mod extend;
mod failure;
mod group;
mod hand_off;
mod hints;
mod holder;
mod image;
mod keys;
mod leave;
mod limiter;
mod line;
mod numbers;
mod permits;
mod queue;
mod release;
mod resume;
mod schema;
mod space;
mod step;
#[cfg(test)]
mod tests;
mod transaction;
mod waiters;
#[cfg_attr(not(target_os = "linux"), path = "no_watch.rs")]
mod watch;
mod write;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::base::clock::{Clock, Moment, read_boot_id};
use crate::base::error::Error;
use crate::base::error::ErrorKind;
use crate::base::name::{LockKind, LockName, QueueName};
use crate::protocol::{
    ACQUIRE_ALL_MAX, Failure, FailureKind, LimitKind, QueueRequest, QueueVerb, Reply, Request,
};
use crate::store::sqlite::bell::Bell;
use crate::store::sqlite::database::{Handle, Open};
use crate::store::sqlite::failure::{Trouble, locked, sqlite};
use crate::store::sqlite::hints::FileHints;
pub use crate::store::sqlite::image::Image;
use crate::store::sqlite::step::{Step, View};
use crate::store::sqlite::transaction::transact;
use crate::store::url::Address;
pub use crate::store::url::SqliteTarget;
use crate::store::{Finding, Health};
use crate::store::{Hints, LimiterNames, Opened, Pending, Store, StoreConfig};

/// The first pause when another process writes: about as long as one transaction takes.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_millis(2);
/// A manual clock does not care about boots.
const MANUAL_BOOT: &str = "manual clock";

/// Locks in a SQLite database. Stores that share a database must use the same clock.
#[derive(Clone)]
pub struct SqliteStore {
    database: Handle,
    config: StoreConfig,
    bell: Arc<Bell>,
}

/// Opens what is a file, or memory.
pub(crate) fn open(address: &Address, config: &StoreConfig) -> Opened {
    let Address::Sqlite(target) = address else { return None };
    let store = SqliteStore::open(target.clone(), config.clone());
    Some(store.map(|store| Arc::new(store) as Arc<dyn Store>).map_err(Error::from))
}

impl SqliteStore {
    /// The store at this place. The database is opened, and made if it does not exist, by the first call.
    pub fn open(target: SqliteTarget, config: StoreConfig) -> Result<Self, Failure> {
        let database = Handle::find(target)?;
        let bell = database.join(&config.hub)?;
        Ok(Self { database, config, bell })
    }

    /// Tries until another process does not stand in the way. Neither the gate nor a mutex is held during
    /// the pauses, so a caller with little time does not queue behind one with much.
    fn patiently<T>(&self, until: Moment, attempt: impl Fn() -> Result<T, Trouble>) -> Result<T, Failure> {
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(Trouble::Failed(failure)) => return Err(failure),
                Err(Trouble::Busy) if self.config.clock.now() >= until => {
                    return Err(locked(self.database.label()));
                }
                Err(Trouble::Busy) => {
                    thread::sleep(pause.mul_f64(0.5 + fastrand::f64()));
                    pause = (pause * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    fn read<T>(
        &self,
        until: Moment,
        read: impl Fn(&Connection, &View<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        self.patiently(until, || self.connected(false, |open| read(&open.connection, &self.view())))
    }

    /// Does something with the connection, while no other thread does.
    fn connected<T>(
        &self,
        writes: bool,
        body: impl FnOnce(&mut Open) -> rusqlite::Result<T>,
    ) -> Result<T, Trouble> {
        self.database
            .with(writes, |database, open| body(open).map_err(|error| sqlite(&error, database.label())))
    }

    /// Goes on with a purge, a transaction at a time: a million rows at once would keep everybody waiting. What there is
    /// no time for is dropped by the next verbs of the queue.
    fn sweep(&self, queue: &QueueName, until: Moment) -> Result<(), Failure> {
        let mut is_left = true;
        while is_left && self.config.clock.now() < until {
            is_left = self.patiently(until, || {
                self.connected(true, |open| {
                    open.set_durable(false)?;
                    let is_left = transact(&open.connection, || {
                        queue::sweep(&self.step(&open.connection, &self.view()), queue)
                    })?;
                    Ok(open.tidy(!is_left) || is_left)
                })
            })?;
        }
        Ok(())
    }

    fn view(&self) -> View<'static> {
        let clock = &self.config.clock;
        View { now: now(clock), wall: wall(clock), boot: boot_id(clock) }
    }

    fn step<'a>(&self, connection: &'a Connection, view: &View<'_>) -> Step<'a> {
        Step { connection, now: view.now, wall: view.wall, margin: self.config.clock_margin }
    }
}

/// For tests that come back to a state and go on another way.
impl SqliteStore {
    /// All rows of the database.
    pub fn image(&self) -> Result<Image, Failure> {
        self.patiently(Moment::FAR, || self.connected(false, |open| image::read(&open.connection)))
    }

    /// Puts these rows in the place of all that are there.
    pub fn restore(&self, rows: &Image) -> Result<(), Failure> {
        if !self.database.is_memory() {
            return Err(Failure::new(FailureKind::Final(ErrorKind::Unsupported), "only memory is restored"));
        }
        self.patiently(Moment::FAR, || self.connected(true, |open| image::write(&open.connection, rows)))
    }
}

impl Store for SqliteStore {
    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure> {
        match request {
            Request::Holder(request) => self.read(until, |connection, view| match request.name.kind() {
                kind if kind.has_permits() => permits::holder(connection, request, view),
                _ => holder::holder(connection, request, view),
            }),
            Request::Waiters(request) => {
                self.read(until, |connection, view| waiters::waiters(connection, request, view))
            }
            // A fresh value waits for no writer.
            Request::Acquire(acquire) if acquire.name.kind() == LockKind::Cached => {
                match self.read(until, |connection, view| cached::peek(connection, acquire, view))? {
                    Some(reply) => Ok(reply),
                    None => self.write(request, until),
                }
            }
            Request::Queue(QueueRequest { queue, verb: QueueVerb::Purge }) if !self.database.is_memory() => {
                let reply = self.write(request, until)?;
                // The purge is done; if this fails, it costs room.
                let _ = self.sweep(queue, until);
                Ok(reply)
            }
            Request::Queue(request) if request.verb.reads() => {
                self.read(until, |connection, view| queue::read(connection, request, view)).map(Reply::Queue)
            }
            _ => self.write(request, until),
        }
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        if self.database.is_memory() {
            // Microseconds: a thread hop would cost more.
            return Box::pin(async move { self.perform(request, until) });
        }
        let (store, request) = (self.clone(), request.clone());
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || store.perform(&request, until)).await;
            done.unwrap_or_else(|error| {
                let kind = if error.is_panic() {
                    FailureKind::Final(ErrorKind::Internal)
                } else {
                    FailureKind::NotSent
                };
                Err(Failure::new(kind, "the thread that works on the database ended early"))
            })
        })
    }

    fn can_acquire_all(&self, names: &mut dyn Iterator<Item = &LockName>) -> bool {
        names.count() <= ACQUIRE_ALL_MAX
    }

    fn listen(&self, _until: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        if self.database.is_memory() {
            return Ok(None);
        }
        let hints = FileHints::open(self.database.clone(), self.config.hub.client(), Arc::clone(&self.bell));
        Ok(Some(Box::new(hints)))
    }

    fn check(&self, until: Moment) -> Result<(), Failure> {
        self.patiently(until, || self.connected(true, |_| Ok(())))
    }

    fn doctor(&self, until: Moment) -> Result<Vec<Finding>, Failure> {
        if self.database.is_memory() {
            let finding =
                Finding::good("place", "an acknowledged task outlives a crash", "the memory of this process");
            return Ok(vec![finding.but(Health::Bad, "use sqlite:PATH or a server, unless this is a test")]);
        }
        self.read(until, |connection, _| doctor::doctor(connection, self.database.label()))
    }

    fn close(&self) {
        self.database.leave(self.config.hub.client());
    }

    fn list(&self, kind: LockKind, cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        self.read(until, |connection, view| {
            holder::list(connection, &self.config.prefixes, kind, cursor, view)
        })
    }

    fn list_limiters(&self, kind: LimitKind, cursor: u64, until: Moment) -> Result<LimiterNames, Failure> {
        self.read(until, |connection, view| {
            limiter::list(connection, &self.config.prefixes, kind, cursor, view)
        })
    }

    fn list_queues(&self, cursor: u64, until: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        self.read(until, |connection, _| queue::list_queues(connection, &self.config.prefixes, cursor))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.database.label()).finish()
    }
}

/// The boot clock as it is stored.
fn now(clock: &Clock) -> i64 {
    i64::try_from(clock.now().as_micros()).unwrap_or(i64::MAX)
}

/// Wall time as it is stored with fences, versions and receipts.
fn wall(clock: &Clock) -> i64 {
    i64::try_from(clock.wall_micros()).unwrap_or(i64::MAX)
}

/// Which boot the clock counts from. Called inside the gate only: a child must not inherit a half-made cell.
fn boot_id(clock: &Clock) -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    match clock {
        Clock::Manual(_) => MANUAL_BOOT,
        // Absent on other systems: there a lease may outlive a reboot, until its time is over.
        Clock::System => SYSTEM.get_or_init(read_boot_id),
    }
}
