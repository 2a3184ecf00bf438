//! What the store looks like, over and over, for all who watch: one look serves them all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{
    Client, Error, ErrorKind, Finding, Health, Holder, ListOptions, LockKind, QueueStats, TaskInfo, TaskState,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::web::history::{History, Sample};
use crate::web::problems::{Problem, problems, unreadable};

/// Between two looks, if they take no longer.
const EVERY: Duration = Duration::from_millis(500);
/// A look takes this part of the time at most.
const SHARE: u32 = 10;
/// Between two looks while nobody watches, for the history.
const UNWATCHED: Duration = Duration::from_secs(10);
/// Who has asked for a page within this time watches.
const WATCHES: Duration = Duration::from_secs(15);
/// Queues that a look asks about at most.
const QUEUES: usize = 200;
/// Locks that a look asks about at most; the next one goes on behind them.
const LOCKS: usize = 50;
/// For how long a lock is shown that was not asked about again.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Between two examinations of the store.
const EXAMINED: Duration = Duration::from_secs(300);
/// Requests that are under way at the same time.
const AT_ONCE: usize = 16;
/// Dead tasks of a queue that are looked at for what they died of.
pub const DEAD: usize = 50;
/// Tasks of a queue that run, and that are tried again, of which the one that has failed most often is looked for.
const TRIED: usize = 20;

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
    seen: Instant,
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
    /// Why the last try has failed, if it has.
    pub error: Option<Arc<Error>>,
    pub at: Option<SystemTime>,
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
        let looker = Looker {
            client,
            may_write,
            keeps_history,
            histories: BTreeMap::new(),
            locks: BTreeMap::new(),
            names: BTreeMap::new(),
            findings: Vec::new(),
            examined: None,
        };
        tokio::spawn(looker.look_for_ever(send, Arc::clone(&asked), begun, Arc::clone(&wanted)));
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
        let is_there =
            |look: &Arc<Look>| look.at.is_some_and(|at| at.elapsed().is_ok_and(|age| age < UNWATCHED));
        match looks.wait_for(is_there).await {
            Ok(look) => Arc::clone(&look),
            Err(_) => Arc::default(),
        }
    }

    /// Changes with every look.
    pub fn watch(&self) -> watch::Receiver<Arc<Look>> {
        self.ask();
        self.looks.clone()
    }
}

struct Looker {
    client: Client,
    may_write: bool,
    keeps_history: bool,
    histories: BTreeMap<String, History>,
    locks: BTreeMap<(&'static str, String), LockLook>,
    /// Of each kind, the names that are to be asked about next, and where the ones behind them begin.
    names: BTreeMap<&'static str, (VecDeque<String>, Option<u64>)>,
    findings: Vec<Finding>,
    examined: Option<Instant>,
}

impl Looker {
    async fn look_for_ever(
        mut self,
        send: watch::Sender<Arc<Look>>,
        asked: Arc<AtomicU64>,
        begun: Instant,
        wanted: Arc<tokio::sync::Notify>,
    ) {
        loop {
            let started = Instant::now();
            let look = match self.look().await {
                Ok(look) => look,
                Err(error) => {
                    Look { error: Some(Arc::new(error)), at: Some(SystemTime::now()), ..Look::default() }
                }
            };
            if send.send(Arc::new(look)).is_err() {
                return;
            }
            let pause = EVERY.max(started.elapsed() * SHARE);
            let since = millis(begun.elapsed()).saturating_sub(asked.load(Ordering::Relaxed));
            if since < millis(WATCHES) {
                tokio::time::sleep(pause).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(UNWATCHED) => {}
                    () = wanted.notified() => {}
                }
            }
        }
    }

    async fn look(&mut self) -> Result<Look, Error> {
        let (names, more_queues) = self.queue_names().await?;
        let (queues, unreadable) = self.queues(names).await?;
        self.look_at_locks().await?;
        self.examine().await;
        let mut locks: Vec<LockLook> = self.locks.values().cloned().collect();
        locks.sort_by_key(|lock| std::cmp::Reverse(lock.waiters()));
        let mut problems = problems(&queues, &locks, &self.findings, SystemTime::now());
        problems.extend(unreadable);
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.weight));
        Ok(Look { queues, more_queues, locks, problems, error: None, at: Some(SystemTime::now()) })
    }

    async fn queue_names(&self) -> Result<(Vec<String>, bool), Error> {
        let (mut names, mut page) = (BTreeSet::new(), None);
        loop {
            let found = match self.client.queue_names(page).await {
                Err(error) if error.kind() == ErrorKind::Unsupported => break,
                found => found?,
            };
            names.extend(found.names);
            page = found.next;
            if page.is_none() || names.len() > QUEUES {
                break;
            }
        }
        let more = names.len() > QUEUES;
        Ok((names.into_iter().take(QUEUES).collect(), more))
    }

    /// Those that can be read, and what is wrong with the others.
    async fn queues(&mut self, names: Vec<String>) -> Result<(Vec<QueueLook>, Vec<Problem>), Error> {
        let (mut looks, mut names) = (JoinSet::new(), names.into_iter());
        let (mut queues, mut problems) = (Vec::new(), Vec::new());
        loop {
            while looks.len() < AT_ONCE {
                let Some(name) = names.next() else { break };
                let client = self.client.clone();
                looks.spawn(async move { (name.clone(), look_at_queue(client, name).await) });
            }
            match looks.join_next().await {
                None => break,
                Some(Ok((_, Ok(look)))) => queues.push(look),
                // The store's own trouble is everybody's.
                Some(Ok((_, Err(error)))) if error.kind() == ErrorKind::StoreUnavailable => {
                    return Err(error);
                }
                Some(Ok((name, Err(error)))) => problems.push(unreadable(&name, &error)),
                Some(Err(_)) => {}
            }
        }
        queues.sort_by(|one, other| one.name.cmp(&other.name));
        for queue in &mut queues {
            let history = self.histories.entry(queue.name.clone()).or_default();
            history.add(&Sample::of(queue));
            if self.keeps_history {
                history.keep(&self.client, &queue.name).await;
            }
            queue.history = Arc::new(history.clone());
        }
        self.histories.retain(|name, _| queues.iter().any(|queue| queue.name == *name));
        Ok((queues, problems))
    }

    /// Asks about the next locks of each kind, and again about those that were asked about longest ago.
    async fn look_at_locks(&mut self) -> Result<(), Error> {
        for kind in LockKind::ALL {
            let mut known: Vec<_> = self.locks.iter().filter(|((of, _), _)| *of == kind.name()).collect();
            known.sort_by_key(|(_, lock)| lock.seen);
            let mut names: BTreeSet<String> =
                known.into_iter().take(LOCKS).map(|((_, name), _)| name.clone()).collect();
            names.extend(self.next_names(kind).await?);
            for name in names {
                let key = (kind.name(), name);
                // One that cannot be read says so on its page.
                let holders = handle(&self.client, kind, &key.1).holders().await.unwrap_or_default();
                if holders.is_empty() {
                    self.locks.remove(&key);
                } else {
                    let look = LockLook::new(kind, key.1.clone(), holders);
                    self.locks.insert(key, look);
                }
            }
        }
        self.locks.retain(|_, lock| lock.seen.elapsed() < REMEMBERED);
        Ok(())
    }

    /// The next names of a kind; a page may have more than are taken at once.
    async fn next_names(&mut self, kind: LockKind) -> Result<Vec<String>, Error> {
        let (names, next) = self.names.entry(kind.name()).or_default();
        if names.is_empty() {
            match self.client.locks_of(kind, *next).await {
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                page => {
                    let page = page?;
                    (*names, *next) = (page.names.into(), page.next);
                }
            }
        }
        let most = names.len().min(LOCKS);
        Ok(names.drain(..most).collect())
    }

    /// Examines the store now and then: that takes a lock, some times. Who may not do that learns it on the server's page.
    async fn examine(&mut self) {
        if self.may_write && self.examined.is_none_or(|at| at.elapsed() > EXAMINED) {
            self.examined = Some(Instant::now());
            self.findings = self.client.doctor().await.unwrap_or_default();
            self.findings.retain(|finding| finding.health == Health::Bad);
        }
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

async fn look_at_queue(client: Client, name: String) -> Result<QueueLook, Error> {
    let queue = client.queue(&name);
    let stats = queue.stats().await?;
    // Without payloads: those may be large, and it is asked often.
    let list = async |state, most| -> Result<_, Error> {
        Ok(queue.list(ListOptions::new(state).payloads(false).max(most)).await?.tasks)
    };
    let first = if stats.ready > 0 { list(TaskState::Ready, 1).await? } else { Vec::new() };
    let dead = if stats.dead > 0 { list(TaskState::Dead, DEAD).await? } else { Vec::new() };
    let due_since = first.first().map(|first| first.due);
    let is_late = due_since.is_some_and(|due| due.elapsed().is_ok_and(|late| late > EVERY));
    let fails = is_late || stats.retried > 0 && stats.claimed > 0;
    let running = if fails { list(TaskState::Claimed, TRIED).await? } else { Vec::new() };
    // One that fails time and again waits for its next attempt most of the time.
    let waits = stats.retried > 0 && stats.scheduled > 0;
    let again = if waits { list(TaskState::Scheduled, TRIED).await? } else { Vec::new() };
    let all = first.into_iter().chain(running).chain(again);
    let tried = all.max_by_key(|task| task.attempts).filter(|task| task.attempts > 1);
    Ok(QueueLook { name, stats, due_since, tried, dead, history: Arc::default() })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
