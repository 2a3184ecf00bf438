//! Waits, from a client of its own, until consumers wait.

use stanchion::internals::{Clock, queue_name, store_config};
use stanchion::protocol::{QueueReply, QueueRequest, QueueVerb, Reply, Request};
use stanchion::store::Store;
use stanchion::store::redis::RedisStore;
use stanchion::store::sqlite::SqliteStore;
use stanchion::store::url::{Address, StoreUrl};

use crate::wait::{SOON, eventually};

/// A client of the store below the library's faces.
#[derive(Debug)]
pub struct Probe {
    store: Box<dyn Store>,
    clock: Clock,
}

impl Probe {
    /// Opens a store by its URL, with the system's clock.
    pub fn open(url: &str) -> Self {
        Self::with_clock(url, Clock::System)
    }

    /// Opens a store by its URL; `memory:` has the clock of its other clients.
    pub fn with_clock(url: &str, clock: Clock) -> Self {
        let config = store_config(clock.clone(), fastrand::u64(..)).expect("a configuration");
        let store: Box<dyn Store> = match StoreUrl::parse(url).expect("a URL").address {
            Address::Redis(address) => Box::new(RedisStore::new(&address, &config).expect("a store")),
            Address::Sqlite(target) => Box::new(SqliteStore::open(target, config).expect("a store")),
        };
        Self { store, clock }
    }

    /// How many consumers wait.
    #[track_caller]
    pub fn idle(&self, queue: &str) -> u64 {
        let queue = queue_name(queue).expect("a queue's name");
        let request = Request::Queue(QueueRequest { queue, verb: QueueVerb::Stats });
        match self.store.perform(&request, self.clock.now() + SOON) {
            Ok(Reply::Queue(QueueReply::Stats(stats))) => stats.waiters,
            other => panic!("the probe was answered {other:?}"),
        }
    }

    /// Waits until so many consumers wait.
    #[track_caller]
    pub fn wait_for_idle(&self, queue: &str, count: u64) {
        eventually(SOON, || self.idle(queue) == count);
    }
}
