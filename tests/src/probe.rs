//! Looks into a queue's store for what the public API does not show: who waits for tasks there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stanchion::internals::{Clock, queue_name, store_config};
use stanchion::store::Store;
use stanchion::store::redis::RedisStore;
use stanchion::store::sqlite::SqliteStore;
use stanchion::store::url::{Address, StoreUrl};
use stanchion::verbs::{
    Abandon, CallId, Claim, ClaimReply, ClientId, QueueReply, QueueRequest, QueueVerb, Reply, Request, Waiter,
};

use crate::wait::{SOON, eventually};

/// A client of the store below the library's faces.
#[derive(Debug)]
pub struct Probe {
    store: Box<dyn Store>,
    clock: Clock,
    client: ClientId,
    calls: AtomicU64,
    url: String,
}

impl Probe {
    /// Opens a store by its URL, with the system's clock.
    pub fn open(url: &str) -> Self {
        Self::with_clock(url, Clock::System)
    }

    /// Opens a store by its URL; `memory:` has the clock of its other clients.
    pub fn with_clock(url: &str, clock: Clock) -> Self {
        let client = fastrand::u64(..);
        let config = store_config(clock.clone(), client).expect("a configuration");
        let store: Box<dyn Store> = match StoreUrl::parse(url).expect("a URL").address {
            Address::Redis(address) => Box::new(RedisStore::new(&address, &config).expect("a store")),
            Address::Sqlite(target) => Box::new(SqliteStore::open(target, config).expect("a store")),
        };
        Self { store, clock, client: ClientId(client), calls: AtomicU64::new(0), url: url.into() }
    }

    /// How many consumers wait.
    #[track_caller]
    pub fn idle(&self, queue: &str) -> u32 {
        if self.url.starts_with("redis:") {
            let mut raw = redis::Client::open(&*self.url).and_then(|client| client.get_connection());
            let raw = raw.as_mut().expect("a raw connection");
            let key = format!("stanchion:idle:{{Queue:{queue}}}");
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is right");
            let mut count = redis::cmd("ZCOUNT");
            return count.arg(key).arg(now.as_millis() as u64).arg("+inf").query(raw).expect("a count");
        }
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let file = rusqlite::Connection::open(path).expect("the store's file");
            let sql = "SELECT count(*) FROM idle WHERE chosen = 0 AND until > ?1
                       AND queue = (SELECT id FROM queue WHERE key = ?2)";
            let now = self.clock.now().as_micros().cast_signed();
            let count = file.query_row(sql, (now, format!("Queue:{queue}")), |row| row.get(0));
            // The first client makes the tables.
            return count.unwrap_or(0);
        }
        self.rank(queue)
    }

    /// As one who waits last. In memory there is no other way; the queue must have no task that is due, since
    /// this would take it, and who asks meanwhile is one further back in line.
    #[track_caller]
    fn rank(&self, queue: &str) -> u32 {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let call = CallId { client: self.client, slot: 1, number };
        let waiter = Some(Waiter { client: self.client, seq: number });
        let claim = Claim { call, max: 1, lease: Duration::from_secs(30), waiter };
        let rank = match self.ask(queue, QueueVerb::Claim(claim)) {
            QueueReply::Claim(ClaimReply::Empty { rank, .. } | ClaimReply::Paused { rank }) => rank,
            other => panic!("the probe took what was there: {other:?}"),
        };
        self.ask(queue, QueueVerb::Abandon(Abandon { call: Some(call), waiter }));
        rank
    }

    /// Waits until so many consumers wait.
    #[track_caller]
    pub fn wait_for_idle(&self, queue: &str, count: u32) {
        eventually(SOON, || self.idle(queue) == count);
    }

    fn ask(&self, queue: &str, verb: QueueVerb) -> QueueReply {
        let request =
            Request::Queue(QueueRequest { queue: queue_name(queue).expect("a queue's name"), verb });
        match self.store.perform(&request, self.clock.now() + SOON) {
            Ok(Reply::Queue(reply)) => reply,
            other => panic!("the probe was answered {other:?}"),
        }
    }
}
