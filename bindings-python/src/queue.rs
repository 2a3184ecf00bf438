//! Queues.

use pyo3::prelude::*;
use stanchion::{Kick, QueueSettings, blocking};

use crate::args::{Flag, Seconds, State, Text, Wall, Whole};
use crate::bridge::Bridge;
use crate::call::call;
use crate::claim::{Delivered, Taken, verdicts};
use crate::faces::faces;
use crate::results::IntoPython;
use crate::task::{ClaimOptions, Task, tasks};

faces! {
    /// A queue.
    Queue(blocking::Queue), AioQueue(stanchion::Queue);

    both {}

    verbs {
        fn enqueue(task: Task) |queue| queue.enqueue(task.0);
        fn enqueue_many(items: Vec<Task>) |queue| queue.enqueue_many(tasks(items));
        fn settle(ends: Vec<Taken>) |queue| queue.settle(verdicts(ends));
        fn pop(max: Whole) |queue| queue.pop(max.narrow(usize::MAX));
        fn peek(max: Whole) |queue| queue.peek(max.narrow(usize::MAX));
        fn get(id: Text) |queue| queue.get(&id.0);
        fn list(state: State, page: Option<Whole>, max: Whole)
            |queue| queue.list(state.0, page.map(|page| page.0), max.narrow(usize::MAX));
        fn remove(id: Text, version: Option<Whole>)
            |queue| queue.remove(&id.0, version.map(|version| version.0));
        fn reschedule(id: Text, due: Wall) |queue| queue.reschedule(&id.0, due.0);
        fn kick(ids: Option<Vec<Text>>, count: Option<Whole>) |queue| queue.kick(kick(ids, count));
        fn stats() |queue| queue.stats();
        fn pause() |queue| queue.pause();
        fn resume() |queue| queue.resume();
        fn purge() |queue| queue.purge();
        fn configure(
            max_len: Option<(Option<Whole>,)>,
            dead_max: Option<Whole>,
            dead_age: Option<Seconds>,
            dead_bytes: Option<Whole>,
            intake: Option<Flag>
        ) |queue| queue.configure(settings(max_len, dead_max, dead_age, dead_bytes, intake));
    }

    blocking {
        fn claim(&self, py: Python<'_>, options: ClaimOptions) -> PyResult<Py<PyAny>> {
            call(py, || self.0.claim(options.0))?.into_python(py)
        }

        fn settle_and_claim(
            &self,
            py: Python<'_>,
            ends: Vec<Taken>,
            options: ClaimOptions,
        ) -> PyResult<Py<PyAny>> {
            call(py, || self.0.settle_and_claim(verdicts(ends), options.0))?.into_python(py)
        }
    }

    aio {
        fn claim(
            &self,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            options: ClaimOptions,
        ) -> PyResult<u64> {
            let queue = self.0.clone();
            bridge.get().start(future, async move { queue.claim(options.0).await.map(Delivered) })
        }

        fn settle_and_claim(
            &self,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            ends: Vec<Taken>,
            options: ClaimOptions,
        ) -> PyResult<u64> {
            let queue = self.0.clone();
            let work = async move {
                let (results, claims) = queue.settle_and_claim(verdicts(ends), options.0).await?;
                Ok((results, Delivered(claims)))
            };
            bridge.get().start(future, work)
        }
    }
}

faces! {
    /// Queues that are claimed from together.
    Queues(blocking::Queues), AioQueues(stanchion::Queues);

    both {}
    verbs {}

    blocking {
        fn claim(&self, py: Python<'_>, options: ClaimOptions) -> PyResult<Py<PyAny>> {
            call(py, || self.0.claim(options.0))?.into_python(py)
        }
    }

    aio {
        fn claim(
            &self,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            options: ClaimOptions,
        ) -> PyResult<u64> {
            let queues = self.0.clone();
            bridge.get().start(future, async move { queues.claim(options.0).await.map(Delivered) })
        }
    }
}

fn kick(ids: Option<Vec<Text>>, count: Option<Whole>) -> Kick {
    match ids {
        Some(ids) => Kick::Ids(ids.into_iter().map(|id| id.0).collect()),
        None => Kick::Count(count.unwrap_or(Whole(0)).narrow(usize::MAX)),
    }
}

/// Of `max_len`, whether it is to be changed, too: `None` is a value.
fn settings(
    max_len: Option<(Option<Whole>,)>,
    dead_max: Option<Whole>,
    dead_age: Option<Seconds>,
    dead_bytes: Option<Whole>,
    intake: Option<Flag>,
) -> QueueSettings {
    let mut settings = QueueSettings::new();
    if let Some((max_len,)) = max_len {
        settings = settings.max_len(max_len.map(|max_len| max_len.0));
    }
    if let Some(Whole(count)) = dead_max {
        settings = settings.dead_max(count);
    }
    if let Some(age) = dead_age {
        settings = settings.dead_age(age.0);
    }
    if let Some(Whole(bytes)) = dead_bytes {
        settings = settings.dead_bytes(bytes);
    }
    if let Some(intake) = intake {
        settings = settings.intake(intake.0);
    }
    settings
}
