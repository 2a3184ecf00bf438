//! Stores that share one in-memory database and one clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stanchion::ManualClock;
use stanchion::internals::{Clock, store_config};
use stanchion::protocol::{Reply, Request};
use stanchion::store::Store;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};
use stanchion::wake::{Hub, Place};

/// One store per client; used for many schedules in turn.
pub struct Stores {
    pub clock: ManualClock,
    stores: Vec<(SqliteStore, Arc<Hub>)>,
}

impl Stores {
    pub fn new(clients: usize) -> Self {
        Self::on(ManualClock::new(), clients)
    }

    /// A database of their own, and the same clock: what takes the place of the first.
    pub fn replica(&self) -> Self {
        Self::on(self.clock.clone(), self.stores.len())
    }

    fn on(clock: ManualClock, clients: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("fleet{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let store = |client| {
            let config = store_config(Clock::Manual(clock.clone()), client).unwrap();
            let hub = Arc::clone(&config.hub);
            let target = SqliteTarget::Memory { name: Some(name.clone()) };
            (SqliteStore::open(target, config).unwrap(), hub)
        };
        Self { stores: (1..=clients as u64).map(store).collect(), clock }
    }

    pub fn perform(&self, client: usize, request: &Request) -> Result<Reply, String> {
        let until = Clock::Manual(self.clock.clone()).now() + Duration::from_secs(5);
        let result = self.stores[client].0.perform(request, until);
        result.map_err(|failure| format!("the store failed: {}", failure.message))
    }

    /// A place for a waiting call of the client.
    pub fn enter(&self, client: usize) -> Place {
        self.stores[client].1.enter()
    }
}
