//! One database of this process: its connection, the clients on it, and the registry of all of them.
//!
//! The mutexes here are locked inside the fork gate only, and never while sleeping: so they are free
//! whenever the process forks, and a child never inherits a locked one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::base::fork::gate::{self, Bypassed, Entered};
use crate::base::fork::{self, Generation};
use crate::base::wake::{Hub, locked};
use crate::protocol::{ClientId, Failure, Request, Waiter};
use crate::store::sqlite::bell::Bell;
use crate::store::sqlite::connection::{canonical, close_quietly, has_moved, open_file, open_memory};
use crate::store::sqlite::failure::{Trouble, forked, sqlite};
use crate::store::sqlite::group::Group;
use crate::store::sqlite::space;
use crate::store::sqlite::transaction;
use crate::store::url::SqliteTarget;

/// So many commits are between two looks at the free pages.
const TIDY_EVERY: u32 = 32;
/// How often a reader looks whether its file is still the one at its path. Writers look every time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// All databases of this process that may be shared: two connections of one process to one file would
/// be two worlds to a fork, and two clients of one process should wake each other at once.
static REGISTRY: Mutex<Vec<Weak<Database>>> = Mutex::new(Vec::new());
/// Numbers connections, so that a version read on one is never compared with another's.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

/// One file or memory database.
#[derive(Debug)]
pub(super) struct Database {
    place: Place,
    label: String,
    generation: Generation,
    /// Whether one of its clients asked for what goes to be overwritten.
    erases: AtomicBool,
    /// The threads that write.
    pub(super) group: Group,
    open: Mutex<Option<Open>>,
    members: Mutex<Vec<Member>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    File { path: PathBuf, mode: u32 },
    Memory { name: Option<String> },
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: Connection,
    /// Different for every connection of the process.
    pub(super) epoch: u64,
    looked: Instant,
    /// Whether a commit is on the disk when it returns, as it was last set.
    durable: bool,
    /// Whether what goes is overwritten, as it was last set.
    erases: bool,
    /// Commits since the last look at the free pages.
    pub(super) commits: u32,
    /// Bytes that may be stored before the next look at the disk.
    pub(super) room: u64,
}

/// A client on this database.
#[derive(Debug)]
struct Member {
    client: ClientId,
    generation: Generation,
    hub: Weak<Hub>,
    bell: Arc<Bell>,
}

/// A client's share of a database. Dropped inside the gate, since it may close the connection.
#[derive(Clone, Debug)]
pub(super) struct Handle(Option<Arc<Database>>);

/// Delivers a hint, outside of the gate.
#[derive(Debug)]
pub(super) struct Call {
    hub: Arc<Hub>,
    bell: Arc<Bell>,
    seq: u64,
}

impl Handle {
    /// The database for this target, shared with whoever has it open already.
    pub(super) fn find(target: SqliteTarget) -> Result<Self, Failure> {
        let (place, label, erases) = match target {
            SqliteTarget::File { path, mode, secure_delete } => {
                let path = canonical(&path)?;
                let label = path.display().to_string();
                (Place::File { path, mode }, label, secure_delete)
            }
            SqliteTarget::Memory { name } => (Place::Memory { name }, "memory:".into(), false),
        };
        let entered = enter()?;
        entered.before_fork(close_all);
        let mut registry = locked(&REGISTRY);
        registry.retain(|database| database.strong_count() > 0);
        let known = registry.iter().filter_map(Weak::upgrade).find(|database| database.serves(&place));
        let database = known.unwrap_or_else(|| {
            let database = Arc::new(Database {
                place,
                label,
                generation: fork::generation(),
                erases: AtomicBool::new(false),
                group: Group::default(),
                open: Mutex::default(),
                members: Mutex::default(),
            });
            registry.push(Arc::downgrade(&database));
            database
        });
        database.erases.fetch_or(erases, Ordering::Relaxed);
        Ok(Self(Some(database)))
    }

    /// Does something with the open connection, inside the gate. `writes` demands that the file is still
    /// the one at its path; others look now and then.
    pub(super) fn with<T>(
        &self,
        writes: bool,
        body: impl FnOnce(&Database, &mut Open) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.enter(|database| database.with(writes, |open| body(database, open)))
    }

    /// Does something inside the gate.
    pub(super) fn enter<T>(&self, body: impl FnOnce(&Database) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let database = self.database()?;
        let _entered = enter()?;
        if database.is_memory() && database.generation != fork::generation() {
            return Err(Trouble::Failed(forked(
                "this memory store was opened before the fork and belongs to the parent process; open a new \
                 one, or use sqlite: or redis: to share locks between processes",
            )));
        }
        body(database)
    }

    /// Makes a client known, so that hints for its waiters reach it directly.
    pub(super) fn join(&self, hub: &Arc<Hub>) -> Result<Arc<Bell>, Failure> {
        let database = self.database()?;
        let _entered = enter()?;
        let bell = Arc::new(Bell::default());
        let mut members = locked(&database.members);
        members.retain(|member| member.hub.strong_count() > 0);
        members.push(Member {
            client: hub.client(),
            generation: fork::generation(),
            hub: Arc::downgrade(hub),
            bell: Arc::clone(&bell),
        });
        Ok(bell)
    }

    /// A client goes. With the last one the connection is closed, and what a memory without a name held is gone.
    pub(super) fn leave(&self, client: ClientId) {
        let (Ok(database), Ok(_entered)) = (self.database(), enter()) else { return };
        let mut members = locked(&database.members);
        members.retain(|member| member.client != client && member.hub.strong_count() > 0);
        if members.is_empty() {
            *locked(&database.open) = None;
        }
    }

    /// What it is called in messages.
    pub(super) fn label(&self) -> &str {
        self.0.as_ref().map_or("", |database| &database.label)
    }

    /// Where it is, if it is a file.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.0.as_deref()?.place {
            Place::File { path, .. } => Some(path),
            Place::Memory { .. } => None,
        }
    }

    /// Whether it lives in memory.
    pub(super) fn is_memory(&self) -> bool {
        self.0.as_ref().is_some_and(|database| database.is_memory())
    }

    pub(super) fn database(&self) -> Result<&Database, Failure> {
        // Only `drop` empties it.
        self.0
            .as_deref()
            .ok_or_else(|| Failure::new(crate::protocol::FailureKind::NotSent, "the store was closed"))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let database = self.0.take();
        match gate::enter() {
            Ok(_entered) => drop(database),
            // The connection is another process's; closing it here would change its file.
            Err(Bypassed) => std::mem::forget(database),
        }
    }
}

impl Database {
    /// What it is called in messages.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it lives in memory.
    pub(super) fn is_memory(&self) -> bool {
        matches!(self.place, Place::Memory { .. })
    }

    /// Does something with the open connection. The caller is inside the gate.
    pub(super) fn with<T>(
        &self,
        writes: bool,
        body: impl FnOnce(&mut Open) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut open = locked(&self.open);
        let result = self.renew(&mut open, writes).and_then(body);
        if matches!(result, Err(Trouble::Failed(_))) && !self.is_memory() {
            // Whatever is wrong, the next call starts afresh.
            *open = None;
        }
        result
    }

    /// Refuses what would fill the disk.
    pub(super) fn check_room(&self, open: &mut Open, request: &Request) -> rusqlite::Result<()> {
        match &self.place {
            Place::File { path, .. } => space::check(path, request, &mut open.room),
            Place::Memory { .. } => Ok(()),
        }
    }

    /// Whether a client that wants this place may share this database.
    fn serves(&self, place: &Place) -> bool {
        match (&self.place, place) {
            (Place::File { path, .. }, Place::File { path: wanted, .. }) => path == wanted,
            (Place::Memory { name: Some(name) }, Place::Memory { name: Some(wanted) }) => {
                name == wanted && self.generation == fork::generation()
            }
            _ => false,
        }
    }

    /// The connection, opened if need be, and afresh if its file was unlinked or replaced.
    fn renew<'open>(&self, open: &'open mut Option<Open>, writes: bool) -> Result<&'open mut Open, Trouble> {
        if let (Some(present), Place::File { .. }) = (open.as_mut(), &self.place)
            && (writes || present.looked.elapsed() >= LOOK_AGAIN)
        {
            if has_moved(&present.connection) {
                if let Some(open) = open.take() {
                    close_quietly(open.connection);
                }
            } else if !writes {
                present.looked = Instant::now();
            }
        }
        let open = match open {
            Some(open) => open,
            None => open.insert(self.connect()?),
        };
        transaction::roll_back(&open.connection);
        let erases = self.erases.load(Ordering::Relaxed);
        open.set_erases(erases).map_err(|error| sqlite(&error, &self.label))?;
        Ok(open)
    }

    fn connect(&self) -> Result<Open, Trouble> {
        let connection = match &self.place {
            Place::File { path, mode } => open_file(path, *mode)?,
            Place::Memory { .. } => open_memory()?,
        };
        Ok(Open {
            connection,
            epoch: EPOCHS.fetch_add(1, Ordering::Relaxed),
            looked: Instant::now(),
            durable: false,
            erases: false,
            commits: 0,
            room: 0,
        })
    }

    /// How to hint this waiter directly, if its client is one of this process.
    pub(super) fn call(&self, waiter: Waiter) -> Option<Call> {
        // After a fork the parent's hubs are still in memory; their mutexes may be locked for ever.
        let generation = fork::generation();
        let members = locked(&self.members);
        let mut same = members.iter().filter(|m| m.client == waiter.client && m.generation == generation);
        same.find_map(|member| {
            Some(Call { hub: member.hub.upgrade()?, bell: Arc::clone(&member.bell), seq: waiter.seq })
        })
    }
}

impl Open {
    /// Sets whether commits wait for the disk. Locks need no such thing: after a power cut nobody holds one.
    /// But a task that was accepted is kept. One connection serves both: a second one would be a second
    /// writer of the same process, and one more thing to close before a fork; the switch costs microseconds.
    /// It also brings the commits that did not wait to the disk: they come first in the same log.
    pub(super) fn set_durable(&mut self, durable: bool) -> rusqlite::Result<()> {
        if self.durable != durable {
            let synchronous = if durable { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            self.durable = durable;
        }
        Ok(())
    }

    /// Has what goes overwritten by zeros from now on.
    fn set_erases(&mut self, erases: bool) -> rusqlite::Result<()> {
        if self.erases != erases {
            self.connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
            self.erases = erases;
        }
        Ok(())
    }

    /// What a file needs now and then, after a commit, or `now`; whether there is more to do. If it cannot be done,
    /// because another program reads or writes, it is done another time.
    pub(super) fn tidy(&mut self, now: bool) -> bool {
        self.commits += 1;
        if self.commits < TIDY_EVERY && !now {
            return false;
        }
        let _ = self.set_durable(false);
        let is_more = space::give_back(&self.connection).unwrap_or(false);
        // If so, the next commit goes on.
        self.commits = if is_more { TIDY_EVERY } else { 0 };
        // What the log holds is as readable as the file.
        if !is_more && (now || self.erases) {
            let _ = space::cut_log(&self.connection);
        }
        is_more
    }
}

impl Call {
    /// Wakes the waiter.
    pub(super) fn deliver(self) {
        self.hub.deliver(self.seq);
        self.bell.ring();
    }
}

/// Enters the gate; fails if this process must not use SQLite.
fn enter() -> Result<Entered, Failure> {
    gate::enter().map_err(|Bypassed| {
        forked(
            "this process was forked in a way that bypassed the fork handlers; open the client only after \
             such a fork, or fork with fork()",
        )
    })
}

/// Closes every file of this process. Runs before a fork, when nobody is inside the gate, so that no
/// mutex is locked. Memory stays: it belongs to the parent alone.
fn close_all() {
    for database in locked(&REGISTRY).iter().filter_map(Weak::upgrade) {
        if !database.is_memory()
            && let Some(open) = locked(&database.open).take()
        {
            close_quietly(open.connection);
        }
    }
}

/// Whether this process has a connection to the file at this moment.
#[cfg(test)]
pub(super) fn is_connected(path: &Path) -> bool {
    let _entered = gate::enter();
    let registry = locked(&REGISTRY);
    let databases: Vec<_> = registry.iter().filter_map(Weak::upgrade).collect();
    databases.iter().any(|database| {
        matches!(&database.place, Place::File { path: known, .. } if known == path)
            && locked(&database.open).is_some()
    })
}
