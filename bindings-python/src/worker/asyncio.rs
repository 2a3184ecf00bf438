//! The worker for asyncio.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use tokio::sync::{Notify, mpsc, oneshot};

use super::{EVENTS, EventFields, Events, Said, Terms, on_terms};
use crate::args::{Seconds, Whole};
use crate::bridge::{Bridge, locked};
use crate::claim::AioClaim;
use crate::error::raise;
use crate::queue::AioQueue;
use crate::results::{IntoPython, object};

/// A worker for asyncio.
#[pyclass(frozen)]
pub(crate) struct AioWorker {
    queue: stanchion::Queue,
    terms: Terms,
    send: mpsc::UnboundedSender<News>,
    news: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<News>>>,
    replies: Arc<Mutex<HashMap<u64, oneshot::Sender<Said>>>>,
    events: Events,
    stop: Arc<Notify>,
    hurry: Arc<Notify>,
}

/// What the worker tells the loop.
enum News {
    Task(u64, stanchion::Claim, oneshot::Sender<Said>),
    /// The claim was lost, or the worker stops: the coroutine is to end.
    Gone(u64),
    Events,
}

#[pymethods]
impl AioWorker {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, AioQueue>,
        concurrency: Option<Whole>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        timeout: Option<Seconds>,
        grace: Option<Seconds>,
        until_empty: bool,
    ) -> PyResult<Self> {
        let (queue, terms) =
            (queue.get().0.clone(), Terms { concurrency, lease, max_run, timeout, grace, until_empty });
        let idle = |_: stanchion::Claim| async { Said::Ok(()) };
        let worker = on_terms!(stanchion::Worker::new(queue.clone(), idle), terms);
        worker.check().map_err(|error| raise(py, &error))?;
        let (send, news) = mpsc::unbounded_channel();
        Ok(Self {
            queue,
            terms,
            send,
            news: Arc::new(tokio::sync::Mutex::new(news)),
            replies: Arc::default(),
            events: Events::default(),
            stop: Arc::default(),
            hurry: Arc::default(),
        })
    }

    fn run(&self, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let (send, numbers) = (self.send.clone(), AtomicU64::new(EVENTS + 1));
        let handler = move |claim: stanchion::Claim| {
            let (send, number) = (send.clone(), numbers.fetch_add(1, Ordering::Relaxed));
            async move {
                let (reply, mut said) = oneshot::channel();
                let _ = send.send(News::Task(number, claim.clone(), reply));
                // The coroutine is told, and takes its time to end.
                let said = tokio::select! {
                    biased;
                    said = &mut said => said,
                    () = lost(&claim) => {
                        let _ = send.send(News::Gone(number));
                        said.await
                    }
                };
                said.unwrap_or_else(|_| Err("the worker was interrupted".into()))
            }
        };
        let (events, send) = (self.events.clone(), self.send.clone());
        let worker = on_terms!(stanchion::Worker::new(self.queue.clone(), handler), self.terms)
            .undropped()
            .on_event(move |event| {
                if events.note(event) {
                    let _ = send.send(News::Events);
                }
            });
        let (stop, hurry) = (Arc::clone(&self.stop), Arc::clone(&self.hurry));
        bridge.get().start(future, async move {
            worker
                .run_until_or(async move { stop.notified().await }, async move { hurry.notified().await })
                .await
        })
    }

    /// The next task, its number and claim; the number of one whose coroutine is to end, without a claim; or 0 if there
    /// are events to fetch.
    fn fetch(&self, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let (news, replies) = (Arc::clone(&self.news), Arc::clone(&self.replies));
        bridge.get().start(future, async move {
            Ok(Fetched(match news.lock().await.recv().await {
                Some(News::Task(number, claim, reply)) => {
                    locked(&replies).insert(number, reply);
                    (number, Some(claim))
                }
                Some(News::Gone(number)) => (number, None),
                // This worker holds a sender, so the channel never ends.
                Some(News::Events) | None => (EVENTS, None),
            }))
        })
    }

    /// What a coroutine says of its task: `None`, or why it failed.
    fn said(&self, number: u64, failure: Option<String>) {
        if let Some(reply) = locked(&self.replies).remove(&number) {
            let _ = reply.send(failure.map_or(Ok(()), Err));
        }
    }

    /// Take no more tasks.
    fn stop(&self) {
        self.stop.notify_one();
    }

    /// The same, and coroutines have no grace left.
    fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// What happened since the last call.
    fn events(&self) -> Vec<EventFields> {
        self.events.take()
    }
}

/// Completes when the claim is lost, or its handler is to end; not when it has settled it.
async fn lost(claim: &stanchion::Claim) {
    claim.lost().await;
    if claim.loss().is_none() {
        std::future::pending::<()>().await;
    }
}

struct Fetched((u64, Option<stanchion::Claim>));

impl IntoPython for Fetched {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (number, claim) = self.0;
        object(py, (number, claim.map(AioClaim)))
    }
}
