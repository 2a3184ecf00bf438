//! Tests of what is SQLite's own; what all stores have in common is tested by the conformance suite.

mod cached;
mod file;
mod flows;
mod fork;
mod group;
mod limiter;
mod permits;
mod queue;
mod queue_calls;
mod queue_claim;
mod queue_enqueue;
mod queue_file;
mod queue_keep;
mod queue_keys;
mod queue_look;
mod queue_manage;
mod queue_settle;
mod verbs;
#[cfg(target_os = "linux")]
#[cfg(target_os = "linux")]
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::{SqliteStore, SqliteTarget};
use crate::base::clock::{Clock, ManualClock, Moment};
use crate::base::fork::gate;
use crate::base::name::{LockKind, LockName, Prefixes};
use crate::base::token::Token;
use crate::base::wake::Hub;
use crate::protocol::{
    Acquire, AcquireReply, CLOCK_MARGIN, ClientId, Extend, Failure, Fence, Leave, META_REFRESH, Release,
    Reply, Request, Waiter,
};
use crate::store::{Store, StoreConfig};

const SECOND: Duration = Duration::from_secs(1);
/// The client of every store made here.
const CLIENT: ClientId = ClientId(9);

fn config(clock: Clock) -> StoreConfig {
    StoreConfig { prefixes: prefixes(), clock, hub: Hub::new(CLIENT), clock_margin: CLOCK_MARGIN }
}

fn prefixes() -> Prefixes {
    Prefixes::parse("Lock:", "Queue:").unwrap()
}

/// A private memory store, and the clock that moves it.
fn memory() -> (SqliteStore, ManualClock) {
    let clock = ManualClock::new();
    let target = SqliteTarget::Memory { name: None };
    (SqliteStore::open(target, config(Clock::Manual(clock.clone()))).unwrap(), clock)
}

fn named(name: &str) -> SqliteStore {
    let target = SqliteTarget::Memory { name: Some(name.into()) };
    SqliteStore::open(target, config(Clock::System)).unwrap()
}

fn open_file(path: &Path) -> SqliteStore {
    open_with_mode(path, 0o600).unwrap()
}

fn open_with_mode(path: &Path, mode: u32) -> Result<SqliteStore, Failure> {
    let store = SqliteStore::open(
        SqliteTarget::File { path: path.into(), mode, secure_delete: false },
        config(Clock::System),
    )?;
    store.check(soon())?;
    Ok(store)
}

/// The failure of opening this file.
fn refusal(path: &Path) -> Failure {
    open_with_mode(path, 0o600).unwrap_err()
}

/// A deadline for calls that nothing should hold up.
fn soon() -> Moment {
    Clock::System.now() + 20 * SECOND
}

fn name(text: &str) -> LockName {
    prefixes().lock_name(text).unwrap()
}

fn token(number: u64) -> Token {
    Token::from_bits(number.into())
}

fn acquire_of(lock: &str, number: u64) -> Acquire {
    Acquire {
        name: name(lock),
        permits: None,
        token: token(number),
        ttl: 30 * SECOND,
        min_fence: Fence::NONE,
        waiter: None,
        patience: None,
        owner: "me".into(),
        adopt: None,
        early: 0.0,
        looks: false,
    }
}

fn waiter(number: u64) -> Option<Waiter> {
    Some(Waiter { client: CLIENT, seq: number })
}

fn release_of(lock: &str, number: u64) -> Release {
    Release {
        name: name(lock),
        token: token(number),
        cooldown: None,
        acquire_resent: false,
        own_fence: None,
        foreign_share: false,
    }
}

impl SqliteStore {
    fn ask(&self, request: Request) -> Reply {
        self.perform(&request, soon()).unwrap()
    }

    /// Acquires without waiting; the fence if it was granted.
    fn try_acquire(&self, lock: &str, number: u64) -> Option<Fence> {
        match self.ask(Request::Acquire(acquire_of(lock, number))) {
            Reply::Acquire(AcquireReply::Granted { fence, .. }) => Some(fence),
            Reply::Acquire(AcquireReply::Busy(_)) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Acquires, registering as a waiter.
    fn wait_for(&self, lock: &str, number: u64) -> Reply {
        self.ask(Request::Acquire(Acquire { waiter: waiter(number), ..acquire_of(lock, number) }))
    }

    fn release(&self, lock: &str, number: u64) -> Reply {
        self.ask(Request::Release(release_of(lock, number)))
    }

    fn leave(&self, lock: &str, number: u64) {
        self.ask(Request::Leave(Leave { name: name(lock), token: token(number), foreign_share: false }));
    }

    /// Runs SQL on the store's own connection.
    fn sql(&self, sql: &str) {
        self.inside(|connection| connection.execute_batch(sql).unwrap());
    }

    fn count(&self, sql: &str) -> i64 {
        self.inside(|connection| connection.query_row(sql, [], |row| row.get(0)).unwrap())
    }

    fn inside<T>(&self, body: impl FnOnce(&Connection) -> T) -> T {
        self.database.with(false, |_, open| Ok(body(&open.connection))).unwrap()
    }
}

/// A directory of its own for one test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stanchion-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("locks.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Another program's connection to a file. It is used inside the gate, since tests fork.
struct Stranger(Option<Connection>);

impl Stranger {
    fn open(path: &Path) -> Self {
        let _entered = gate::enter().unwrap();
        Self(Some(Connection::open(path).unwrap()))
    }

    fn sql(&self, sql: &str) {
        let _entered = gate::enter().unwrap();
        self.0.as_ref().unwrap().execute_batch(sql).unwrap();
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _entered = gate::enter().unwrap();
        drop(self.0.take());
    }
}

#[test]
fn stores_with_one_name_share_memory_and_others_do_not() {
    let (here, there, other) = (named("shared"), named("shared"), named("another"));
    assert!(here.try_acquire("a", 1).is_some());
    assert_eq!(there.try_acquire("a", 2), None);
    assert!(other.try_acquire("a", 3).is_some());
    assert!(memory().0.try_acquire("a", 4).is_some());
    drop((here, there));
    assert!(named("shared").try_acquire("a", 5).is_some(), "nobody kept it, so it is gone");
}

#[test]
fn an_offer_wakes_a_waiter_of_another_client_in_this_process() {
    let (holder, clock) = memory();
    let hub = Hub::new(ClientId(10));
    let place = hub.enter();
    holder.database.join(&hub).unwrap();
    let mut other = acquire_of("a", 2);
    other.waiter = Some(place.waiter());
    assert!(holder.try_acquire("a", 1).is_some());
    holder.ask(Request::Acquire(other));
    assert!(!place.take_hint());
    holder.release("a", 1);
    assert!(place.take_hint());
    clock.advance(SECOND);
}

#[test]
fn a_client_that_is_gone_is_not_hinted_and_harms_nobody() {
    let (store, _) = memory();
    let hub = Hub::new(ClientId(10));
    store.database.join(&hub).unwrap();
    assert!(store.try_acquire("a", 1).is_some());
    let registered = Waiter { client: ClientId(10), seq: 1 };
    store.ask(Request::Acquire(Acquire { waiter: Some(registered), ..acquire_of("a", 2) }));
    drop(hub);
    assert_eq!(store.release("a", 1), Reply::Release(crate::protocol::ReleaseReply::Released));
}

#[test]
fn a_panic_inside_leaves_the_store_usable() {
    let (store, _) = memory();
    let store = Arc::new(store);
    let inner = Arc::clone(&store);
    let panicked = std::thread::spawn(move || {
        inner.inside(|connection| {
            connection.execute_batch("BEGIN IMMEDIATE; DELETE FROM store").unwrap();
            panic!("on purpose")
        })
    });
    assert!(panicked.join().is_err());
    assert!(store.try_acquire("a", 1).is_some());
}

#[test]
fn names_of_held_locks_are_listed_page_by_page() {
    let (store, clock) = memory();
    for number in 0..1_500 {
        store.try_acquire(&format!("n{number}"), 1);
    }
    store.release("n7", 1);
    let (next, first) = store.list(LockKind::Exclusive, 0, soon()).unwrap();
    let (end, rest) = store.list(LockKind::Exclusive, next, soon()).unwrap();
    assert_eq!((end, first.len() + rest.len()), (0, 1_499));
    assert!(!first.iter().any(|name| name.as_str() == "n7"));
    clock.advance(31 * SECOND);
    assert_eq!(store.list(LockKind::Exclusive, 0, soon()).unwrap().1, vec![]);
}

#[test]
fn nothing_but_the_locks_own_row_stays() {
    let (store, clock) = memory();
    for number in 1..=5 {
        store.wait_for("a", number);
    }
    store.leave("a", 3);
    for number in [1, 2, 4, 5] {
        store.wait_for("a", number);
        store.release("a", number);
    }
    assert_eq!(store.count("SELECT count(*) FROM waiter"), 0);
    assert_eq!(store.count("SELECT count(*) FROM lock WHERE token IS NOT NULL"), 0);
    assert_eq!(store.count("SELECT count(*) FROM ended"), 1);
    clock.advance(61 * SECOND);
    store.leave("b", 6);
    assert_eq!(store.count("SELECT count(*) FROM ended WHERE lock = 1"), 0);
}

#[test]
fn waiters_that_vanished_are_cleared_away_by_the_use_of_other_locks() {
    let (store, clock) = memory();
    store.try_acquire("a", 1);
    store.wait_for("a", 2);
    clock.advance(59 * SECOND);
    store.try_acquire("b", 3);
    assert_eq!(store.count("SELECT count(*) FROM waiter"), 1);
    clock.advance(2 * SECOND);
    store.try_acquire("c", 3);
    assert_eq!(store.count("SELECT count(*) FROM waiter"), 0);
}

#[test]
fn locks_are_forgotten_when_no_clock_can_go_back_so_far_and_used_ones_are_not() {
    let (store, clock) = memory();
    let first = store.try_acquire("old", 1).unwrap();
    store.release("old", 1);
    store.try_acquire("used", 1);
    store.release("used", 1);
    clock.advance(CLOCK_MARGIN - SECOND);
    store.try_acquire("used", 2);
    clock.advance(META_REFRESH + SECOND);
    store.try_acquire("new", 3);
    let keys: String = store.inside(|c| {
        c.query_row("SELECT group_concat(key ORDER BY key) FROM lock", [], |row| row.get(0)).unwrap()
    });
    assert_eq!(keys, "Lock:new,Lock:used");
    assert!(store.try_acquire("old", 4).unwrap() > first);
}

/// Held for longer than its row's life, and given back a moment ago: the margin begins there.
#[test]
fn a_long_lease_is_remembered_from_its_end_on() {
    let (store, clock) = memory();
    let first = store.try_acquire("long", 1).unwrap();
    store.ask(Request::Extend(Extend::new(name("long"), token(1), 10 * CLOCK_MARGIN)));
    clock.advance(9 * CLOCK_MARGIN);
    store.try_acquire("new", 2);
    assert_eq!(store.count("SELECT count(*) FROM lock WHERE key = 'Lock:long'"), 1, "held");
    store.release("long", 1);
    clock.advance(CLOCK_MARGIN - SECOND);
    store.try_acquire("newer", 3);
    assert_eq!(store.count("SELECT count(*) FROM lock WHERE key = 'Lock:long'"), 1, "given back a while ago");
    assert!(store.try_acquire("long", 4).unwrap() > first);
}
