//! What the store looks like, over and over, for all who watch: one look serves them all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{Client, Error, Finding, Holder, LockKind, QueueStats, TaskInfo};
use tokio::sync::watch;

use crate::queues::counts::millis;
use crate::web::history::History;
use crate::web::looker::Looker;
use crate::web::problems::Problem;

/// Between two looks while nobody watches, for the history.
pub const UNWATCHED: Duration = Duration::from_secs(10);
/// Who looks waits for so long for something new.
const PATIENCE: Duration = Duration::from_secs(3);

/// A queue.
#[derive(Clone, Debug)]
pub struct QueueLook {
    pub name: String,
    pub stats: QueueStats,
    /// Since when the first in line has been due.
    pub due_since: Option<SystemTime>,
    /// The one of those first in line, running or to be tried again that has been tried most often.
    pub tried: Option<TaskInfo>,
    /// The last of those that have died.
    pub dead: Vec<TaskInfo>,
    /// What was before.
    pub history: Arc<History>,
}

/// A lock that is held.
#[derive(Clone, Debug)]
pub struct LockLook {
    pub kind: LockKind,
    pub name: String,
    pub holders: Vec<Holder>,
    /// When it was asked about last.
    pub seen: Instant,
}

/// One look.
#[derive(Debug, Default)]
pub struct Look {
    pub queues: Vec<QueueLook>,
    /// Whether there are more.
    pub more_queues: bool,
    /// Those with the longest line first.
    pub locks: Vec<LockLook>,
    pub problems: Vec<Problem>,
    /// What is found when the store is examined, which is done every five minutes.
    pub findings: Vec<Finding>,
    /// Why the last try has failed, if it has.
    pub error: Option<Arc<Error>>,
    pub at: Option<SystemTime>,
    /// For how long nobody needs another one.
    pub good_for: Duration,
}

impl Look {
    /// How old it is, if it is older than it should be.
    pub fn age(&self) -> Option<Duration> {
        self.at.and_then(|at| at.elapsed().ok()).filter(|age| *age > self.good_for)
    }
}

/// Looks by itself.
pub struct Lookout {
    looks: watch::Receiver<Arc<Look>>,
    asked: Arc<AtomicU64>,
    begun: Instant,
    wanted: Arc<tokio::sync::Notify>,
}

impl Lookout {
    /// Begins to look.
    ///
    /// `may_write`: whether the store is examined, which takes a lock; `keeps_history`: whether it keeps the history, too.
    pub fn start(client: Client, may_write: bool, keeps_history: bool) -> Self {
        let (send, looks) = watch::channel(Arc::default());
        let (asked, wanted) = (Arc::new(AtomicU64::new(0)), Arc::new(tokio::sync::Notify::new()));
        let begun = Instant::now();
        let (send, heard, wakes) = (Arc::new(send), Arc::clone(&asked), Arc::clone(&wanted));
        tokio::spawn(async move {
            loop {
                let looker = Looker::new(client.clone(), may_write, keeps_history);
                let looking =
                    looker.look_for_ever(Arc::clone(&send), Arc::clone(&heard), begun, Arc::clone(&wakes));
                // A bug in it must not blind the dashboard for good.
                if tokio::spawn(looking).await.is_ok() {
                    return;
                }
                tokio::time::sleep(UNWATCHED).await;
            }
        });
        Self { looks, asked, begun, wanted }
    }

    /// Somebody wants to know.
    pub fn ask(&self) {
        self.asked.store(millis(self.begun.elapsed()), Ordering::Relaxed);
        self.wanted.notify_one();
    }

    /// The latest look; the first one is waited for.
    pub async fn latest(&self) -> Arc<Look> {
        self.ask();
        let mut looks = self.looks.clone();
        let is_there = |look: &Arc<Look>| look.at.is_some() && look.age().is_none();
        if let Ok(Ok(look)) = tokio::time::timeout(PATIENCE, looks.wait_for(is_there)).await {
            return Arc::clone(&look);
        }
        // The store is slow: an old one is better than none, and says how old it is.
        Arc::clone(&self.looks.borrow())
    }

    /// Changes with every look.
    pub fn watch(&self) -> watch::Receiver<Arc<Look>> {
        self.ask();
        self.looks.clone()
    }
}

impl LockLook {
    /// As it is now.
    pub fn new(kind: LockKind, name: String, holders: Vec<Holder>) -> Self {
        Self { kind, name, holders, seen: Instant::now() }
    }

    /// How many wait for it.
    pub fn waiters(&self) -> u64 {
        self.holders.iter().map(|holder| holder.waiters).max().unwrap_or(0)
    }
}

/// A handle to look at it or to break it, not to acquire it.
pub fn handle(client: &Client, kind: LockKind, name: &str) -> stanchion::Lock {
    match kind {
        LockKind::ReadWrite => client.rw_lock(name).read().clone(),
        LockKind::Semaphore => client.semaphore(name, 1),
        LockKind::Cached => client.computation(name),
        _ => client.lock(name),
    }
}
