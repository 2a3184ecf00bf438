//! Queues.

use napi::bindgen_prelude::ClassInstance;
use napi_derive::napi;
use stanchion::{Error, ListOptions, MAX_TTL, Receipt, Removed, Rescheduled, Version};

use crate::bridge::Bridge;
use crate::claim::{Delivered, Verdict};
use crate::convert::{Flag, Millis, Text, Wall, Whole, at_once, millis, span, wall};
use crate::error::Failure;
use crate::limits::RateInfo;
use crate::task::{Enqueued, EnqueuedOrNot, EventPage, Task, TaskInfo, TaskResult, cancelled, infos, state};

/// How to claim.
#[napi]
pub struct ClaimOptions(stanchion::ClaimOptions);

#[napi]
impl ClaimOptions {
    #[napi(constructor)]
    pub fn new(
        max: Option<Whole>,
        lease: Option<Millis>,
        renew: Option<Flag>,
        max_run: Option<Millis>,
        wait: Option<Millis>,
        timeout: Option<Millis>,
    ) -> Self {
        let mut options = stanchion::ClaimOptions::new();
        if let Some(max) = max {
            options = options.max(max.narrow(usize::MAX));
        }
        if let Some(lease) = lease {
            options = options.lease(lease.0);
        }
        if let Some(renew) = renew {
            options = options.renew(renew.0);
        }
        if let Some(max_run) = max_run {
            options = options.max_run(max_run.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(timeout) = timeout {
            options = options.timeout(timeout.0);
        }
        Self(options)
    }
}

/// Which dead tasks are meant. Of ids, receipts and a count one at most is given, which the package sees to.
#[napi]
pub struct DeadTasks(stanchion::DeadTasks);

#[napi]
impl DeadTasks {
    #[napi(constructor)]
    pub fn new(
        ids: Option<Vec<Text>>,
        receipts: Option<Vec<Whole>>,
        count: Option<Whole>,
        reason: Option<Text>,
        prefix: Option<Text>,
        older_than: Option<Millis>,
    ) -> Self {
        let mut dead = match (ids, receipts, count) {
            (Some(ids), ..) => stanchion::DeadTasks::ids(ids.into_iter().map(|id| id.0)),
            (_, Some(receipts), _) => {
                stanchion::DeadTasks::receipts(receipts.into_iter().map(|one| Receipt::new(one.0)))
            }
            (.., Some(count)) => stanchion::DeadTasks::oldest(count.0),
            _ => stanchion::DeadTasks::all(),
        };
        if let Some(reason) = reason {
            dead = dead.reason(reason.0);
        }
        if let Some(prefix) = prefix {
            dead = dead.prefix(prefix.0);
        }
        if let Some(age) = older_than {
            dead = dead.older_than(age.0);
        }
        Self(dead)
    }
}

/// Some tasks, and where the next ones begin.
#[napi(object, object_from_js = false)]
pub struct TaskPage {
    pub tasks: Vec<TaskInfo>,
    pub next: Option<String>,
}

/// What became of verdicts (nothing, or why it failed), and new claims.
#[napi(object, object_from_js = false)]
pub struct SettledAndClaimed {
    pub settled: Vec<Option<Failure>>,
    #[napi(ts_type = "Claim[]")]
    pub claims: Delivered,
}

/// Whether it was removed, and the version that it has instead.
#[napi(object, object_from_js = false)]
pub struct RemovedOrNot {
    pub removed: bool,
    pub other_version: Option<u64>,
}

/// How a reschedule ended, and the new due time in milliseconds since 1970.
#[napi(object, object_from_js = false)]
pub struct RescheduledOrNot {
    pub outcome: &'static str,
    pub due: Option<f64>,
}

/// A process that works on a queue.
#[napi(object, object_from_js = false)]
pub struct Consumer {
    pub label: String,
    pub host: String,
    pub pid: u32,
    pub waiters: f64,
    pub claims: f64,
}

impl From<stanchion::Consumer> for Consumer {
    fn from(one: stanchion::Consumer) -> Self {
        let stanchion::Consumer { label, host, pid, waiters, claims, .. } = one;
        Self { label, host, pid, waiters: waiters as f64, claims: claims as f64 }
    }
}

/// How many tasks there are, what happened so far, and the settings. Times are milliseconds.
#[napi(object, object_from_js = false)]
pub struct QueueStats {
    pub scheduled: f64,
    pub ready: f64,
    pub claimed: f64,
    pub held: f64,
    pub keys_waiting: f64,
    pub next_key: Option<f64>,
    pub gate: &'static str,
    pub opens_in: Option<f64>,
    pub dead: f64,
    pub successors: f64,
    pub paused: bool,
    pub waiters: f64,
    pub next_due: Option<f64>,
    pub enqueued: f64,
    pub acked: f64,
    pub retried: f64,
    pub died: f64,
    pub schedules: f64,
    pub schedules_late: f64,
    pub flows: f64,
    pub max_len: Option<f64>,
    pub dead_max: f64,
    pub dead_age: f64,
    pub dead_bytes: f64,
    pub intake: bool,
    pub events: f64,
    pub max_running: Option<f64>,
    pub rate: Option<RateInfo>,
    pub key_concurrency: Option<u32>,
    pub key_rate: Option<RateInfo>,
}

impl From<stanchion::QueueStats> for QueueStats {
    fn from(stats: stanchion::QueueStats) -> Self {
        Self {
            scheduled: stats.scheduled as f64,
            ready: stats.ready as f64,
            claimed: stats.claimed as f64,
            held: stats.held as f64,
            keys_waiting: stats.keys_waiting as f64,
            next_key: stats.next_key.map(millis),
            gate: stats.gate.name(),
            opens_in: stats.gate.opens().map(millis),
            dead: stats.dead as f64,
            successors: stats.successors as f64,
            paused: stats.paused,
            waiters: stats.waiters as f64,
            next_due: stats.next_due.map(millis),
            enqueued: stats.enqueued as f64,
            acked: stats.acked as f64,
            retried: stats.retried as f64,
            died: stats.died as f64,
            schedules: stats.schedules as f64,
            schedules_late: millis(stats.schedules_late),
            flows: stats.flows as f64,
            max_len: stats.settings.max_len.map(|max_len| max_len as f64),
            dead_max: stats.settings.dead_max as f64,
            dead_age: millis(stats.settings.dead_age),
            dead_bytes: stats.settings.dead_bytes as f64,
            intake: stats.settings.intake,
            events: stats.settings.events as f64,
            max_running: stats.settings.max_running.map(|most| most as f64),
            rate: stats.settings.rate.map(RateInfo::from),
            key_concurrency: stats.settings.key_concurrency,
            key_rate: stats.settings.key_rate.map(RateInfo::from),
        }
    }
}

fn removed(removed: Removed) -> RemovedOrNot {
    match removed {
        Removed::Removed => RemovedOrNot { removed: true, other_version: None },
        Removed::OtherVersion(version) => RemovedOrNot { removed: false, other_version: Some(version.get()) },
        _ => RemovedOrNot { removed: false, other_version: None },
    }
}

fn rescheduled(rescheduled: Rescheduled) -> RescheduledOrNot {
    let (outcome, due) = match rescheduled {
        Rescheduled::Moved(due) => ("moved", Some(wall(due))),
        Rescheduled::Absent => ("absent", None),
        Rescheduled::Claimed => ("claimed", None),
        Rescheduled::Dead => ("dead", None),
        _ => ("other", None),
    };
    RescheduledOrNot { outcome, due }
}

fn settled(results: Vec<Result<(), Error>>) -> Vec<Option<Failure>> {
    results.into_iter().map(|result| result.err().as_ref().map(Failure::from)).collect()
}

/// A queue.
#[napi]
pub struct Queue(pub(crate) stanchion::Queue);

#[napi]
impl Queue {
    #[napi]
    pub fn enqueue(&self, bridge: Bridge, call: u32, task: &Task) -> napi::Result<()> {
        let (queue, task) = (self.0.clone(), task.0.clone());
        bridge.start(call, async move { queue.enqueue(task).await.map(Enqueued::from) })
    }

    #[napi]
    pub fn enqueue_many(
        &self,
        bridge: Bridge,
        call: u32,
        tasks: Vec<ClassInstance<'_, Task>>,
    ) -> napi::Result<()> {
        let queue = self.0.clone();
        let tasks: Vec<stanchion::Task> = tasks.iter().map(|task| task.0.clone()).collect();
        bridge.start(call, async move {
            let results = queue.enqueue_many(tasks).await?;
            Ok(results.into_iter().map(EnqueuedOrNot::from).collect::<Vec<_>>())
        })
    }

    #[napi]
    pub fn claim(&self, bridge: Bridge, call: u32, options: &ClaimOptions) -> napi::Result<()> {
        let (queue, options) = (self.0.clone(), options.0.clone());
        bridge.start(call, async move { queue.claim(options).await.map(Delivered::new) })
    }

    #[napi]
    pub fn settle(
        &self,
        bridge: Bridge,
        call: u32,
        verdicts: Vec<ClassInstance<'_, Verdict>>,
    ) -> napi::Result<()> {
        let (queue, verdicts) = (self.0.clone(), Verdict::take(&verdicts)?);
        bridge.start(call, async move { queue.settle(verdicts).await.map(settled) })
    }

    #[napi]
    pub fn settle_and_claim(
        &self,
        bridge: Bridge,
        call: u32,
        verdicts: Vec<ClassInstance<'_, Verdict>>,
        options: &ClaimOptions,
    ) -> napi::Result<()> {
        let (queue, verdicts, options) = (self.0.clone(), Verdict::take(&verdicts)?, options.0.clone());
        bridge.start(call, async move {
            let (results, claims) = queue.settle_and_claim(verdicts, options).await?;
            Ok(SettledAndClaimed { settled: settled(results), claims: Delivered::new(claims) })
        })
    }

    #[napi]
    pub fn pop(&self, bridge: Bridge, call: u32, max: Whole) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.pop(max.narrow(usize::MAX)).await.map(infos) })
    }

    #[napi]
    pub fn peek(&self, bridge: Bridge, call: u32, max: Whole) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.peek(max.narrow(usize::MAX)).await.map(infos) })
    }

    #[napi]
    pub fn get(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { Ok(queue.get(&id.0).await?.map(TaskInfo::from)) })
    }

    #[napi]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub fn list(
        &self,
        bridge: Bridge,
        call: u32,
        name: Text,
        page: Option<Text>,
        max: Option<Whole>,
        prefix: Option<Text>,
        payloads: Option<Flag>,
    ) -> napi::Result<()> {
        let (queue, mut options) = (self.0.clone(), ListOptions::new(state(&name.0)?));
        if let Some(page) = page {
            options = options.page(page.0);
        }
        if let Some(max) = max {
            options = options.max(max.narrow(usize::MAX));
        }
        if let Some(prefix) = prefix {
            options = options.prefix(prefix.0);
        }
        if let Some(payloads) = payloads {
            options = options.payloads(payloads.0);
        }
        bridge.start(call, async move {
            let page = queue.list(options).await?;
            Ok(TaskPage { tasks: infos(page.tasks), next: page.next })
        })
    }

    #[napi]
    pub fn remove(&self, bridge: Bridge, call: u32, id: Text, version: Option<Whole>) -> napi::Result<()> {
        let queue = self.0.clone();
        let version = version.map(|version| Version::new(version.0));
        bridge.start(call, async move { queue.remove(&id.0, version).await.map(removed) })
    }

    #[napi]
    pub fn cancel(&self, bridge: Bridge, call: u32, id: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.cancel(&id.0).await.map(cancelled) })
    }

    #[napi]
    pub fn result(
        &self,
        bridge: Bridge,
        call: u32,
        id: Text,
        version: Option<Whole>,
        wait: Option<Millis>,
    ) -> napi::Result<()> {
        let (queue, wait) = (self.0.clone(), at_once(wait));
        let version = version.map(|version| Version::new(version.0));
        bridge.start(call, async move { queue.result(&id.0, version, wait).await.map(TaskResult::from) })
    }

    /// Without a wait the longest one, after which the package asks again.
    #[napi]
    pub fn events(
        &self,
        bridge: Bridge,
        call: u32,
        after: Option<Whole>,
        wait: Option<Millis>,
    ) -> napi::Result<()> {
        let (queue, wait) = (self.0.clone(), span(wait).unwrap_or(MAX_TTL));
        let after = after.map(|after| after.0);
        bridge.start(call, async move { queue.events(after, wait).await.map(EventPage::from) })
    }

    #[napi]
    pub fn reschedule(&self, bridge: Bridge, call: u32, id: Text, due: Wall) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.reschedule(&id.0, due.0).await.map(rescheduled) })
    }

    #[napi]
    pub fn kick(&self, bridge: Bridge, call: u32, dead: &DeadTasks) -> napi::Result<()> {
        let (queue, dead) = (self.0.clone(), dead.0.clone());
        bridge.start(call, async move { queue.kick(dead).await.map(|count| count as f64) })
    }

    #[napi]
    pub fn remove_dead(&self, bridge: Bridge, call: u32, dead: &DeadTasks) -> napi::Result<()> {
        let (queue, dead) = (self.0.clone(), dead.0.clone());
        bridge.start(call, async move { queue.remove_dead(dead).await.map(|count| count as f64) })
    }

    #[napi]
    pub fn stats(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.stats().await.map(QueueStats::from) })
    }

    #[napi]
    pub fn consumers(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move {
            Ok(queue.consumers().await?.into_iter().map(Consumer::from).collect::<Vec<_>>())
        })
    }

    #[napi]
    pub fn pause(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.pause().await })
    }

    #[napi]
    pub fn resume(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.resume().await })
    }

    #[napi]
    pub fn purge(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.purge().await.map(|count| count as f64) })
    }
}

/// Queues that are claimed from together.
#[napi]
pub struct Queues(pub(crate) stanchion::Queues);

#[napi]
impl Queues {
    #[napi]
    pub fn claim(&self, bridge: Bridge, call: u32, options: &ClaimOptions) -> napi::Result<()> {
        let (queues, options) = (self.0.clone(), options.0.clone());
        bridge.start(call, async move { queues.claim(options).await.map(Delivered::new) })
    }
}
