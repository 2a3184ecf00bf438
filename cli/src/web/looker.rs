//! What looks at the store, over and over: a part of what there is each time, and the rest the next time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{Client, Error, ErrorKind, Finding, Health, ListOptions, LockKind, TaskState};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::queues::counts::millis;
use crate::web::history::{History, Sample};
use crate::web::look::{LockLook, Look, QueueLook, UNWATCHED, handle};
use crate::web::problems::{Problem, problems, unreadable};

/// Between two looks, if they take no longer.
const EVERY: Duration = Duration::from_millis(500);
/// A look takes this part of the time at most.
const SHARE: u32 = 10;
/// Who has asked for a page within this time watches.
const WATCHES: Duration = Duration::from_secs(15);
/// Queues that a look asks about at most; the next one goes on behind them.
const QUEUES: usize = 200;
/// Pages of queues' names that a look reads at most; the next one goes on behind them.
const PAGES: usize = 40;
/// Locks that a look asks about at most; the next one goes on behind them.
const LOCKS: usize = 50;
/// For how long a lock is shown that was not asked about again.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Between two examinations of the store.
const EXAMINED: Duration = Duration::from_secs(300);
/// Requests that are under way at the same time.
const AT_ONCE: usize = 16;
/// Dead tasks of a queue that are looked at for what they died of.
const DEAD: usize = 50;
/// Tasks of a queue that run, and that are tried again, of which the one that has failed most often is looked for.
const TRIED: usize = 20;

/// Looks over and over.
pub struct Looker {
    client: Client,
    may_write: bool,
    keeps_history: bool,
    /// The queues that there are, and in which round over all names each was seen.
    known: BTreeMap<String, u64>,
    round: u64,
    next_names: Option<u64>,
    seen_all: bool,
    /// Behind which the next look goes on.
    last_queue: String,
    queues: BTreeMap<String, QueueLook>,
    /// Those that could not be read, and why.
    unreadable: BTreeMap<String, Problem>,
    histories: BTreeMap<String, History>,
    locks: BTreeMap<(&'static str, String), LockLook>,
    /// Of each kind, the names that are to be asked about next, and where the ones behind them begin.
    names: BTreeMap<&'static str, (VecDeque<String>, Option<u64>)>,
    findings: Vec<Finding>,
    examined: Option<Instant>,
}

impl Looker {
    /// One that knows nothing yet.
    pub fn new(client: Client, may_write: bool, keeps_history: bool) -> Self {
        Self {
            client,
            may_write,
            keeps_history,
            known: BTreeMap::new(),
            round: 0,
            next_names: None,
            seen_all: false,
            last_queue: String::new(),
            queues: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            histories: BTreeMap::new(),
            locks: BTreeMap::new(),
            names: BTreeMap::new(),
            findings: Vec::new(),
            examined: None,
        }
    }

    /// Looks until nobody can hear of it any more.
    pub async fn look_for_ever(
        mut self,
        send: Arc<watch::Sender<Arc<Look>>>,
        asked: Arc<AtomicU64>,
        begun: Instant,
        wanted: Arc<tokio::sync::Notify>,
    ) {
        loop {
            let started = Instant::now();
            let mut look = self.look().await.unwrap_or_else(|error| Look {
                error: Some(Arc::new(error)),
                findings: self.findings.clone(),
                at: Some(SystemTime::now()),
                ..Look::default()
            });
            let pause = EVERY.max(started.elapsed() * SHARE);
            look.good_for = UNWATCHED.max(2 * pause);
            if send.send(Arc::new(look)).is_err() {
                return;
            }
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
        let is_all = self.look_for_queues().await?;
        let names = self.next_queues();
        self.look_at_queues(names).await?;
        let queues: Vec<QueueLook> = self.queues.values().cloned().collect();
        let more_queues = !is_all || queues.len() + self.unreadable.len() < self.known.len();
        self.look_at_locks().await?;
        self.examine().await;
        let mut locks: Vec<LockLook> = self.locks.values().cloned().collect();
        locks.sort_by_key(|lock| std::cmp::Reverse(lock.waiters()));
        let bad: Vec<Finding> =
            self.findings.iter().filter(|one| one.health == Health::Bad).cloned().collect();
        let mut problems = problems(&queues, &locks, &bad, SystemTime::now());
        problems.extend(self.unreadable.values().cloned());
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.weight));
        let findings = self.findings.clone();
        let at = Some(SystemTime::now());
        Ok(Look { queues, more_queues, locks, problems, findings, at, ..Look::default() })
    }

    /// Learns the names of queues, some pages at a time; whether all that there are are known.
    async fn look_for_queues(&mut self) -> Result<bool, Error> {
        for _ in 0..PAGES {
            let found = match self.client.queue_names(self.next_names).await {
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(true),
                found => found?,
            };
            self.known.extend(found.names.into_iter().map(|name| (name, self.round)));
            self.next_names = found.next;
            if self.next_names.is_none() {
                // Who was not seen for a whole round is gone.
                self.known.retain(|_, round| *round + 1 >= self.round);
                self.round += 1;
                self.seen_all = true;
                break;
            }
        }
        self.queues.retain(|name, _| self.known.contains_key(name));
        self.unreadable.retain(|name, _| self.known.contains_key(name));
        self.histories.retain(|name, _| self.known.contains_key(name));
        Ok(self.seen_all)
    }

    /// The next ones to ask about: all, or those behind the last.
    fn next_queues(&mut self) -> Vec<String> {
        let behind = (Bound::Excluded(self.last_queue.clone()), Bound::Unbounded);
        let next = self.known.range(behind).chain(self.known.range(..=self.last_queue.clone()));
        let names: Vec<String> = next.map(|(name, _)| name.clone()).take(QUEUES).collect();
        self.last_queue = names.last().cloned().unwrap_or_default();
        names
    }

    /// Looks at those that can be read, and keeps what is wrong with the others.
    async fn look_at_queues(&mut self, names: Vec<String>) -> Result<(), Error> {
        let (mut looks, mut names) = (JoinSet::new(), names.into_iter());
        loop {
            while looks.len() < AT_ONCE {
                let Some(name) = names.next() else { break };
                let client = self.client.clone();
                looks.spawn(async move { (name.clone(), look_at_queue(client, name).await) });
            }
            match looks.join_next().await {
                None => return Ok(()),
                Some(Ok((name, Ok(mut look)))) => {
                    let history = self.histories.entry(name.clone()).or_default();
                    history.add(&Sample::of(&look));
                    if self.keeps_history {
                        history.keep(&self.client, &name).await;
                    }
                    look.history = Arc::new(history.clone());
                    self.unreadable.remove(&name);
                    self.queues.insert(name, look);
                }
                // The store's own trouble is everybody's.
                Some(Ok((_, Err(error)))) if error.kind() == ErrorKind::StoreUnavailable => {
                    return Err(error);
                }
                Some(Ok((name, Err(error)))) => {
                    self.queues.remove(&name);
                    self.unreadable.insert(name.clone(), unreadable(&name, &error));
                }
                Some(Err(_)) => {}
            }
        }
    }

    /// Asks about the next locks of each kind, and again about those that were asked about longest ago.
    async fn look_at_locks(&mut self) -> Result<(), Error> {
        for kind in LockKind::ALL {
            let mut known: Vec<_> = self.locks.iter().filter(|((of, _), _)| *of == kind.name()).collect();
            known.sort_by_key(|(_, lock)| lock.seen);
            let mut names: BTreeSet<String> =
                known.into_iter().take(LOCKS).map(|((_, name), _)| name.clone()).collect();
            names.extend(self.next_names(kind).await?);
            let (mut looks, mut names) = (JoinSet::new(), names.into_iter());
            loop {
                while looks.len() < AT_ONCE {
                    let Some(name) = names.next() else { break };
                    let lock = handle(&self.client, kind, &name);
                    looks.spawn(async move { (name, lock.holders().await) });
                }
                let Some(looked) = looks.join_next().await else { break };
                let Ok((name, holders)) = looked else { continue };
                // One that cannot be read says so on the page of locks.
                match holders.unwrap_or_default() {
                    holders if holders.is_empty() => drop(self.locks.remove(&(kind.name(), name))),
                    holders => {
                        let look = LockLook::new(kind, name.clone(), holders);
                        self.locks.insert((kind.name(), name), look);
                    }
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
        }
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
