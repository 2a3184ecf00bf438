//! Queues.

use pyo3::prelude::*;
use stanchion::{ListOptions, MAX_TTL, Version, blocking};

use crate::args::{Few, Flag, Seconds, State, Text, Wall, Whole, span};
use crate::bridge::Bridge;
use crate::call::call;
use crate::claim::{Delivered, Taken, taken};
use crate::faces::faces;
use crate::flow::{Node, added, flow};
use crate::limits::{KeyLimits, QueueConfig, Rate};
use crate::results::IntoPython;
use crate::schedule::{Schedule, schedules};
use crate::task::{ClaimOptions, DeadTasks, Task, tasks};

faces! {
    /// A queue.
    Queue(blocking::Queue), AioQueue(stanchion::Queue);

    both {}

    verbs {
        fn enqueue(task: Task) |queue| queue.enqueue(task.0);
        fn enqueue_many(items: Vec<Task>) |queue| queue.enqueue_many(tasks(items));
        fn settle(verdicts: Vec<Taken>) |queue| queue.settle(taken(verdicts));
        fn pop(n: Whole) |queue| queue.pop(n.narrow(usize::MAX));
        fn peek(n: Whole) |queue| queue.peek(n.narrow(usize::MAX));
        fn get(id: Text) |queue| queue.get(&id.0);
        fn list(state: State, page: Option<Text>, max: Whole, prefix: Text, payloads: Flag)
            |queue| queue.list(listing(state, page, max, prefix, payloads));
        fn remove(id: Text, version: Option<Whole>)
            |queue| queue.remove(&id.0, version.map(|version| Version::new(version.0)));
        fn cancel(id: Text) |queue| queue.cancel(&id.0);
        fn result(id: Text, version: Option<Whole>, wait: Seconds)
            |queue| queue.result(&id.0, version.map(|version| Version::new(version.0)), wait.0);
        // Without a wait the longest one, after which the package asks again.
        fn events(after: Option<Whole>, wait: Option<Seconds>)
            |queue| queue.events(after.map(|after| after.0), span(wait).unwrap_or(MAX_TTL));
        fn reschedule(id: Text, due: Wall) |queue| queue.reschedule(&id.0, due.0);
        fn kick(dead: DeadTasks) |queue| queue.kick(dead.0);
        fn remove_dead(dead: DeadTasks) |queue| queue.remove_dead(dead.0);
        fn stats() |queue| queue.stats();
        fn consumers() |queue| queue.consumers();
        fn pause() |queue| queue.pause();
        fn resume() |queue| queue.resume();
        fn purge() |queue| queue.purge();
        fn configure(config: QueueConfig) |queue| queue.configure(config.0);
        fn schedule(schedule: Schedule) |queue| queue.schedule(schedule.0);
        fn sync_schedules(owner: Text, generation: Whole, items: Vec<Schedule>)
            |queue| queue.sync_schedules(&owner.0, generation.0, schedules(items));
        fn get_schedule(id: Text) |queue| queue.get_schedule(&id.0);
        fn list_schedules(page: Option<Text>, max: Whole)
            |queue| queue.list_schedules(page.as_ref().map(|page| &*page.0), max.narrow(usize::MAX));
        fn pause_schedule(id: Text) |queue| queue.pause_schedule(&id.0);
        fn resume_schedule(id: Text) |queue| queue.resume_schedule(&id.0);
        fn run_schedule(id: Text) |queue| queue.run_schedule(&id.0);
        fn remove_schedule(id: Text) |queue| queue.remove_schedule(&id.0);
        fn limit_key(key: Text, concurrency: Option<Few>, rate: Option<Rate>, weight: Option<Few>)
            |queue| queue.limit_key(&key.0, KeyLimits::core(KeyLimits::new(concurrency, rate, weight)));
        fn get_key(key: Text) |queue| queue.get_key(&key.0);
        fn list_keys(page: Option<Text>, max: Whole)
            |queue| queue.list_keys(page.as_ref().map(|page| &*page.0), max.narrow(usize::MAX));
        fn enqueue_flow(id: Text, nodes: Vec<Node>) |queue| queue.enqueue_flow(flow(id, nodes));
        fn add_to_flow(id: Text, nodes: Vec<Node>) |queue| queue.add_to_flow(&id.0, added(nodes));
        fn get_flow(id: Text) |queue| queue.get_flow(&id.0);
        fn list_flows(page: Option<Text>, max: Whole)
            |queue| queue.list_flows(page.as_ref().map(|page| &*page.0), max.narrow(usize::MAX));
        fn cancel_flow(id: Text) |queue| queue.cancel_flow(&id.0);
        fn retry_flow(id: Text) |queue| queue.retry_flow(&id.0);
    }

    blocking {
        fn claim(&self, py: Python<'_>, options: ClaimOptions) -> PyResult<Py<PyAny>> {
            call(py, || self.0.claim(options.0))?.into_python(py)
        }

        fn settle_and_claim(
            &self,
            py: Python<'_>,
            verdicts: Vec<Taken>,
            options: ClaimOptions,
        ) -> PyResult<Py<PyAny>> {
            call(py, || self.0.settle_and_claim(taken(verdicts), options.0))?.into_python(py)
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
            verdicts: Vec<Taken>,
            options: ClaimOptions,
        ) -> PyResult<u64> {
            let queue = self.0.clone();
            let work = async move {
                let (results, claims) = queue.settle_and_claim(taken(verdicts), options.0).await?;
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

fn listing(state: State, page: Option<Text>, max: Whole, prefix: Text, payloads: Flag) -> ListOptions {
    let options = ListOptions::new(state.0).max(max.narrow(usize::MAX)).prefix(prefix.0).payloads(payloads.0);
    match page {
        Some(page) => options.page(page.0),
        None => options,
    }
}
