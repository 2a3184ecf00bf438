//! Workers: the core's, whose handlers pass each task on to the event loop, and wait for its verdict.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use napi_derive::napi;
use stanchion::WorkerEvent;
use tokio::sync::{Notify, oneshot};

use crate::bridge::{Bridge, Messenger, locked};
use crate::claim::Claim;
use crate::convert::{Flag, Millis, Whole};
use crate::error::Failure;
use crate::queue::Queue;

/// What a handler said: nothing, or why it failed.
type Said = Result<(), String>;
/// Where the handlers of the core wait for what those of the facade say, by the number of the run.
type Replies = Arc<Mutex<HashMap<u32, oneshot::Sender<Said>>>>;

/// What a worker tells: "task" (a run begins: its number and claim), "gone" (the run is to end: its claim was lost, or
/// the worker stops), and of a task by id and attempt: "completed", "failed", "dead", "lost", "stuck"; "missed" (of a
/// schedule by its id: how many slots, and how many were fired); "empty"; "error"; "back".
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct News {
    pub what: &'static str,
    pub run: Option<u32>,
    #[napi(ts_type = "Claim")]
    pub claim: Option<Claim>,
    pub id: Option<String>,
    pub attempt: Option<u32>,
    pub reason: Option<String>,
    pub failure: Option<Failure>,
    /// In milliseconds.
    pub after: Option<f64>,
    pub missed: Option<f64>,
    pub fired: Option<f64>,
}

fn news(event: WorkerEvent<'_>) -> Option<News> {
    let of = |what, id: &str, attempt, reason: Option<&str>| {
        let (id, attempt, reason) = (Some(id.to_owned()), Some(attempt), reason.map(str::to_owned));
        Some(News { what, id, attempt, reason, ..News::default() })
    };
    match event {
        WorkerEvent::Completed { id, attempt } => of("completed", id, attempt, None),
        WorkerEvent::Failed { id, attempt, reason } => of("failed", id, attempt, Some(reason)),
        WorkerEvent::Dead { id, attempt, reason } => of("dead", id, attempt, Some(reason)),
        WorkerEvent::Lost { id, attempt } => of("lost", id, attempt, None),
        WorkerEvent::Stuck { id, attempt, .. } => of("stuck", id, attempt, None),
        WorkerEvent::SlotsMissed { schedule, missed, fired, .. } => Some(News {
            what: "missed",
            id: Some(schedule.to_owned()),
            missed: Some(missed as f64),
            fired: Some(fired as f64),
            ..News::default()
        }),
        WorkerEvent::Empty => Some(News { what: "empty", ..News::default() }),
        WorkerEvent::StoreFailed { error } => {
            Some(News { what: "error", failure: Some(error.into()), ..News::default() })
        }
        WorkerEvent::StoreBack { after } => {
            Some(News { what: "back", after: Some(after.as_secs_f64() * 1e3), ..News::default() })
        }
        _ => None,
    }
}

/// What a worker has done.
#[napi(object, object_from_js = false)]
pub struct WorkerReport {
    pub completed: f64,
    pub failed: f64,
    pub dead: f64,
    pub lost: f64,
}

/// A worker.
#[napi]
pub struct Worker {
    queue: stanchion::Queue,
    concurrency: Option<Whole>,
    lease: Option<Millis>,
    max_run: Option<Millis>,
    timeout: Option<Millis>,
    grace: Option<Millis>,
    until_empty: bool,
    replies: Replies,
    stop: Arc<Notify>,
    hurry: Arc<Notify>,
}

#[napi]
impl Worker {
    #[napi(constructor)]
    pub fn new(
        queue: &Queue,
        concurrency: Option<Whole>,
        lease: Option<Millis>,
        max_run: Option<Millis>,
        grace: Option<Millis>,
        until_empty: Option<Flag>,
        timeout: Option<Millis>,
    ) -> Self {
        let until_empty = until_empty.is_some_and(|flag| flag.0);
        let queue = queue.0.clone();
        Self {
            queue,
            concurrency,
            lease,
            max_run,
            timeout,
            grace,
            until_empty,
            replies: Arc::default(),
            stop: Arc::default(),
            hurry: Arc::default(),
        }
    }

    /// Works until it is stopped; its news come under the number of this call.
    #[napi]
    pub fn run(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let messenger = bridge.messenger(call);
        let (tasks, replies, runs) =
            (messenger.clone(), Arc::clone(&self.replies), Arc::new(AtomicU32::new(1)));
        let handler = move |claim: stanchion::Claim| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            pass_on(run, claim, Arc::clone(&replies), tasks.clone())
        };
        let worker = stanchion::Worker::new(self.queue.clone(), handler).undropped();
        let mut worker = worker.on_event(move |event| {
            if let Some(news) = news(event) {
                messenger.tell(news);
            }
        });
        if let Some(concurrency) = self.concurrency {
            worker = worker.concurrency(concurrency.narrow(usize::MAX));
        }
        if let Some(lease) = self.lease {
            worker = worker.lease(lease.0);
        }
        if let Some(max_run) = self.max_run {
            worker = worker.max_run(max_run.0);
        }
        if let Some(timeout) = self.timeout {
            worker = worker.timeout(timeout.0);
        }
        if let Some(grace) = self.grace {
            worker = worker.grace(grace.0);
        }
        if self.until_empty {
            worker = worker.until_empty();
        }
        let (stop, hurry) = (Arc::clone(&self.stop), Arc::clone(&self.hurry));
        bridge.start(call, async move {
            let (stop, hurry) = (async move { stop.notified().await }, async move { hurry.notified().await });
            let report = worker.run_until_or(stop, hurry).await?;
            Ok(WorkerReport {
                completed: report.completed as f64,
                failed: report.failed as f64,
                dead: report.dead as f64,
                lost: report.lost as f64,
            })
        })
    }

    /// What the facade's handler says of its run: nothing, or why it failed; also in a text with lone surrogates,
    /// which do not come along.
    #[napi]
    pub fn said(&self, run: u32, failure: Option<String>) {
        let reply = locked(&self.replies).remove(&run);
        if let Some(reply) = reply {
            let _ = reply.send(failure.map_or(Ok(()), Err));
        }
    }

    /// Take no more tasks.
    #[napi]
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// The same, and handlers have no grace left.
    #[napi]
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }
}

/// A handler's part: has the event loop work on the task, and waits for what it says.
async fn pass_on(run: u32, claim: stanchion::Claim, replies: Replies, messenger: Messenger) -> Said {
    let (reply, mut said) = oneshot::channel();
    locked(&replies).insert(run, reply);
    let task = Some(Claim(claim.clone()));
    messenger.tell(News { what: "task", run: Some(run), claim: task, ..News::default() });
    // The handler is told, and takes its time to end.
    let said = tokio::select! {
        biased;
        said = &mut said => said,
        () = lost(&claim) => {
            messenger.tell(News { what: "gone", run: Some(run), ..News::default() });
            said.await
        }
    };
    said.unwrap_or_else(|_| Err("the worker was interrupted".into()))
}

/// Completes when the claim is lost, or its handler is to end; not when it has settled it.
async fn lost(claim: &stanchion::Claim) {
    claim.lost().await;
    if claim.loss().is_none() {
        std::future::pending::<()>().await;
    }
}
