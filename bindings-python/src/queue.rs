//! Queues.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use stanchion::{
    Enqueued, Error, Kick, OnDuplicate, Outcome, QueueSettings, QueueStats, Removed, Rescheduled, TaskPage,
    TaskState, blocking,
};

use crate::bridge::Bridge;
use crate::call::call;
use crate::claim::{AioClaim, Claim, Delivered, Verdict};
use crate::convert::{Seconds, Text, Wall, Whole, task_info, wall};
use crate::error::{invalid, raise};

/// A task to put in.
#[pyclass(frozen)]
pub(crate) struct Task(stanchion::Task);

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (id, payload, *, headers=None, delay=None, due=None, priority=None, max_attempts=None, expires=None, on_duplicate=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        id: Option<Text>,
        payload: &Bound<'_, PyBytes>,
        headers: Option<BTreeMap<Text, Text>>,
        delay: Option<Seconds>,
        due: Option<Wall>,
        priority: Option<Whole>,
        max_attempts: Option<Whole>,
        expires: Option<Seconds>,
        on_duplicate: Option<(String, Option<Seconds>)>,
    ) -> PyResult<Self> {
        let mut task = id.map_or_else(stanchion::Task::auto, |id| stanchion::Task::new(id.0));
        task = task.payload(payload.as_bytes());
        for (name, value) in headers.unwrap_or_default() {
            task = task.header(name.0, value.0);
        }
        if let Some(delay) = delay {
            task = task.delay(delay.0);
        }
        if let Some(due) = due {
            task = task.due(due.0);
        }
        if let Some(Whole(priority)) = priority {
            let priority = u8::try_from(priority);
            task = task.priority(priority.map_err(|_| invalid(py, "priority is not between 0 and 255"))?);
        }
        if let Some(max_attempts) = max_attempts {
            task = task.max_attempts(max_attempts.narrow(u32::MAX));
        }
        if let Some(expires) = expires {
            task = task.expires(expires.0);
        }
        if let Some((policy, time)) = on_duplicate {
            task = task.on_duplicate(match (&*policy, time) {
                ("keep", _) => OnDuplicate::Keep,
                ("replace", _) => OnDuplicate::Replace,
                ("debounce", Some(Seconds(max_wait))) => OnDuplicate::Debounce { max_wait },
                ("throttle", Some(Seconds(window))) => OnDuplicate::Throttle { window },
                _ => return Err(invalid(py, "on_duplicate is Keep, Replace, Debounce or Throttle")),
            });
        }
        Ok(Self(task))
    }
}

/// How to claim.
#[pyclass(frozen)]
pub(crate) struct ClaimOptions(stanchion::ClaimOptions);

#[pymethods]
impl ClaimOptions {
    #[new]
    #[pyo3(signature = (*, max=None, lease=None, renew=None, max_run=None, wait=None))]
    fn new(
        max: Option<Whole>,
        lease: Option<Seconds>,
        renew: Option<bool>,
        max_run: Option<Seconds>,
        wait: Option<Seconds>,
    ) -> Self {
        let mut options = stanchion::ClaimOptions::new();
        if let Some(max) = max {
            options = options.max(max.narrow(usize::MAX));
        }
        if let Some(lease) = lease {
            options = options.lease(lease.0);
        }
        if let Some(renew) = renew {
            options = options.renew(renew);
        }
        if let Some(max_run) = max_run {
            options = options.max_run(max_run.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        Self(options)
    }
}

/// As the arguments of the Python class.
type EnqueuedFields = (String, &'static str, u64, Option<f64>);

fn enqueued(enqueued: Enqueued) -> EnqueuedFields {
    let outcome = match enqueued.outcome {
        Outcome::Added => "added",
        Outcome::Kept => "kept",
        Outcome::Replaced => "replaced",
        Outcome::Successor => "successor",
        Outcome::Throttled => "throttled",
        _ => "other",
    };
    (enqueued.id, outcome, enqueued.version, enqueued.due.map(wall))
}

/// One object per task: the fields, or the exception.
fn all_enqueued(py: Python<'_>, results: Vec<Result<Enqueued, Error>>) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for result in results {
        match result {
            Ok(one) => list.append(enqueued(one))?,
            Err(error) => list.append(raise(py, &error).into_value(py))?,
        }
    }
    Ok(list.into_any().unbind())
}

/// One object per verdict: `None`, or the exception.
fn all_settled(py: Python<'_>, results: Vec<Result<(), Error>>) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for result in results {
        match result {
            Ok(()) => list.append(py.None())?,
            Err(error) => list.append(raise(py, &error).into_value(py))?,
        }
    }
    Ok(list.into_any().unbind())
}

fn infos(py: Python<'_>, tasks: Vec<stanchion::TaskInfo>) -> PyResult<Py<PyAny>> {
    let tasks: PyResult<Vec<Py<PyAny>>> = tasks.into_iter().map(|task| task_info(py, task)).collect();
    Ok(tasks?.into_pyobject(py)?.into_any().unbind())
}

fn info(py: Python<'_>, task: Option<stanchion::TaskInfo>) -> PyResult<Py<PyAny>> {
    task.map_or_else(|| Ok(py.None()), |task| task_info(py, task))
}

fn task_page(py: Python<'_>, page: TaskPage) -> PyResult<Py<PyAny>> {
    Ok((infos(py, page.tasks)?, page.next).into_pyobject(py)?.into_any().unbind())
}

/// Whether it was removed, and the version that it has instead.
fn removed(removed: Removed) -> (bool, Option<u64>) {
    match removed {
        Removed::Removed => (true, None),
        Removed::OtherVersion(version) => (false, Some(version)),
        _ => (false, None),
    }
}

/// How it ended, and the new due time.
fn rescheduled(rescheduled: Rescheduled) -> (&'static str, Option<f64>) {
    match rescheduled {
        Rescheduled::Moved(due) => ("moved", Some(wall(due))),
        Rescheduled::Absent => ("absent", None),
        Rescheduled::Claimed => ("claimed", None),
        Rescheduled::Dead => ("dead", None),
        _ => ("other", None),
    }
}

fn stats(py: Python<'_>, stats: QueueStats) -> PyResult<Py<PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("scheduled", stats.scheduled)?;
    fields.set_item("ready", stats.ready)?;
    fields.set_item("claimed", stats.claimed)?;
    fields.set_item("dead", stats.dead)?;
    fields.set_item("successors", stats.successors)?;
    fields.set_item("paused", stats.paused)?;
    fields.set_item("next_due", stats.next_due.map(|time| time.as_secs_f64()))?;
    fields.set_item("enqueued", stats.enqueued)?;
    fields.set_item("acked", stats.acked)?;
    fields.set_item("retried", stats.retried)?;
    fields.set_item("died", stats.died)?;
    fields.set_item("max_len", stats.settings.max_len)?;
    fields.set_item("dead_max", stats.settings.dead_max)?;
    fields.set_item("dead_age", stats.settings.dead_age.as_secs_f64())?;
    fields.set_item("dead_bytes", stats.settings.dead_bytes)?;
    fields.set_item("intake", stats.settings.intake)?;
    Ok(fields.into_any().unbind())
}

fn state(py: Python<'_>, name: &str) -> PyResult<TaskState> {
    match name {
        "scheduled" => Ok(TaskState::Scheduled),
        "ready" => Ok(TaskState::Ready),
        "claimed" => Ok(TaskState::Claimed),
        "dead" => Ok(TaskState::Dead),
        _ => Err(invalid(py, "a state is scheduled, ready, claimed or dead")),
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
    intake: Option<bool>,
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
        settings = settings.intake(intake);
    }
    settings
}

fn taken(py: Python<'_>, verdicts: Vec<Bound<'_, Verdict>>) -> PyResult<Vec<stanchion::Verdict>> {
    verdicts.iter().map(|verdict| verdict.try_borrow_mut()?.take(py)).collect()
}

/// A blocking queue.
#[pyclass(frozen)]
pub(crate) struct Queue(pub(crate) blocking::Queue);

#[pymethods]
impl Queue {
    fn enqueue(&self, py: Python<'_>, task: &Bound<'_, Task>) -> PyResult<EnqueuedFields> {
        let task = task.get().0.clone();
        call(py, || self.0.enqueue(task)).map(enqueued)
    }

    fn enqueue_many(&self, py: Python<'_>, tasks: Vec<Bound<'_, Task>>) -> PyResult<Py<PyAny>> {
        let tasks: Vec<stanchion::Task> = tasks.iter().map(|task| task.get().0.clone()).collect();
        let results = call(py, || self.0.enqueue_many(tasks))?;
        all_enqueued(py, results)
    }

    fn claim(&self, py: Python<'_>, options: &Bound<'_, ClaimOptions>) -> PyResult<Vec<Claim>> {
        let options = options.get().0.clone();
        Ok(call(py, || self.0.claim(options))?.into_iter().map(Claim).collect())
    }

    fn settle(&self, py: Python<'_>, verdicts: Vec<Bound<'_, Verdict>>) -> PyResult<Py<PyAny>> {
        let verdicts = taken(py, verdicts)?;
        let results = call(py, || self.0.settle(verdicts))?;
        all_settled(py, results)
    }

    fn settle_and_claim(
        &self,
        py: Python<'_>,
        verdicts: Vec<Bound<'_, Verdict>>,
        options: &Bound<'_, ClaimOptions>,
    ) -> PyResult<(Py<PyAny>, Vec<Claim>)> {
        let (verdicts, options) = (taken(py, verdicts)?, options.get().0.clone());
        let (results, claims) = call(py, || self.0.settle_and_claim(verdicts, options))?;
        Ok((all_settled(py, results)?, claims.into_iter().map(Claim).collect()))
    }

    fn pop(&self, py: Python<'_>, max: Whole) -> PyResult<Py<PyAny>> {
        infos(py, call(py, || self.0.pop(max.narrow(usize::MAX)))?)
    }

    fn peek(&self, py: Python<'_>, max: Whole) -> PyResult<Py<PyAny>> {
        infos(py, call(py, || self.0.peek(max.narrow(usize::MAX)))?)
    }

    fn get(&self, py: Python<'_>, id: Text) -> PyResult<Py<PyAny>> {
        info(py, call(py, || self.0.get(&id.0))?)
    }

    fn list(&self, py: Python<'_>, name: Text, page: Option<Whole>, max: Whole) -> PyResult<Py<PyAny>> {
        let state = state(py, &name.0)?;
        let from = page.map(|page| page.0);
        task_page(py, call(py, || self.0.list(state, from, max.narrow(usize::MAX)))?)
    }

    fn remove(&self, py: Python<'_>, id: Text, version: Option<Whole>) -> PyResult<(bool, Option<u64>)> {
        call(py, || self.0.remove(&id.0, version.map(|version| version.0))).map(removed)
    }

    fn reschedule(&self, py: Python<'_>, id: Text, due: Wall) -> PyResult<(&'static str, Option<f64>)> {
        call(py, || self.0.reschedule(&id.0, due.0)).map(rescheduled)
    }

    fn kick(&self, py: Python<'_>, ids: Option<Vec<Text>>, count: Option<Whole>) -> PyResult<u64> {
        call(py, || self.0.kick(kick(ids, count)))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        stats(py, call(py, || self.0.stats())?)
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.0.pause())
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.0.resume())
    }

    fn purge(&self, py: Python<'_>) -> PyResult<u64> {
        call(py, || self.0.purge())
    }

    fn configure(
        &self,
        py: Python<'_>,
        max_len: Option<(Option<Whole>,)>,
        dead_max: Option<Whole>,
        dead_age: Option<Seconds>,
        dead_bytes: Option<Whole>,
        intake: Option<bool>,
    ) -> PyResult<()> {
        let settings = settings(max_len, dead_max, dead_age, dead_bytes, intake);
        call(py, || self.0.configure(settings))
    }
}

/// Blocking queues that are claimed from together.
#[pyclass(frozen)]
pub(crate) struct Queues(pub(crate) blocking::Queues);

#[pymethods]
impl Queues {
    fn claim(&self, py: Python<'_>, options: &Bound<'_, ClaimOptions>) -> PyResult<Vec<Claim>> {
        let options = options.get().0.clone();
        Ok(call(py, || self.0.claim(options))?.into_iter().map(Claim).collect())
    }
}

/// A queue for asyncio.
#[pyclass(frozen)]
pub(crate) struct AioQueue(pub(crate) stanchion::Queue);

/// Where the result of an asyncio call goes: the loop's bridge, and the future.
macro_rules! aio {
    ($self:ident, $py:ident, $bridge:ident, $future:ident, |$queue:ident| $work:expr, $convert:expr) => {{
        let $queue = $self.0.clone();
        $bridge.get().start($py, $future, async move { $work.await }, $convert)
    }};
}

fn number(py: Python<'_>, count: u64) -> PyResult<Py<PyAny>> {
    object(py, count)
}

fn object<'py, T: IntoPyObject<'py>>(py: Python<'py>, value: T) -> PyResult<Py<PyAny>> {
    use pyo3::BoundObject;
    Ok(value.into_pyobject(py).map_err(Into::into)?.into_any().unbind())
}

fn claims(py: Python<'_>, delivered: Delivered) -> PyResult<Py<PyAny>> {
    object(py, delivered.take().collect::<Vec<AioClaim>>())
}

#[pymethods]
impl AioQueue {
    fn enqueue(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        task: &Bound<'_, Task>,
    ) -> PyResult<u64> {
        let task = task.get().0.clone();
        aio!(self, py, bridge, future, |queue| queue.enqueue(task), |py, one| object(py, enqueued(one)))
    }

    fn enqueue_many(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        tasks: Vec<Bound<'_, Task>>,
    ) -> PyResult<u64> {
        let tasks: Vec<stanchion::Task> = tasks.iter().map(|task| task.get().0.clone()).collect();
        aio!(self, py, bridge, future, |queue| queue.enqueue_many(tasks), all_enqueued)
    }

    fn claim(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        options: &Bound<'_, ClaimOptions>,
    ) -> PyResult<u64> {
        let (queue, options) = (self.0.clone(), options.get().0.clone());
        let work = async move { queue.claim(options).await.map(Delivered::new) };
        bridge.get().start(py, future, work, claims)
    }

    fn settle(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        verdicts: Vec<Bound<'_, Verdict>>,
    ) -> PyResult<u64> {
        let verdicts = taken(py, verdicts)?;
        aio!(self, py, bridge, future, |queue| queue.settle(verdicts), all_settled)
    }

    fn settle_and_claim(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        verdicts: Vec<Bound<'_, Verdict>>,
        options: &Bound<'_, ClaimOptions>,
    ) -> PyResult<u64> {
        let (queue, verdicts, options) = (self.0.clone(), taken(py, verdicts)?, options.get().0.clone());
        let work = async move {
            let (results, claims) = queue.settle_and_claim(verdicts, options).await?;
            Ok((results, Delivered::new(claims)))
        };
        bridge.get().start(py, future, work, |py, (results, delivered)| {
            object(py, (all_settled(py, results)?, claims(py, delivered)?))
        })
    }

    fn pop(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        max: Whole,
    ) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.pop(max.narrow(usize::MAX)), infos)
    }

    fn peek(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        max: Whole,
    ) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.peek(max.narrow(usize::MAX)), infos)
    }

    fn get(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>, id: Text) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.get(&id.0), info)
    }

    fn list(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        name: Text,
        page: Option<Whole>,
        max: Whole,
    ) -> PyResult<u64> {
        let state = state(py, &name.0)?;
        let from = page.map(|page| page.0);
        aio!(self, py, bridge, future, |queue| queue.list(state, from, max.narrow(usize::MAX)), task_page)
    }

    fn remove(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        id: Text,
        version: Option<Whole>,
    ) -> PyResult<u64> {
        let version = version.map(|version| version.0);
        aio!(self, py, bridge, future, |queue| queue.remove(&id.0, version), |py, it| object(py, removed(it)))
    }

    fn reschedule(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        id: Text,
        due: Wall,
    ) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.reschedule(&id.0, due.0), |py, it| object(
            py,
            rescheduled(it)
        ))
    }

    fn kick(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        ids: Option<Vec<Text>>,
        count: Option<Whole>,
    ) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.kick(kick(ids, count)), number)
    }

    fn stats(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.stats(), stats)
    }

    fn pause(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.pause(), |py, ()| Ok(py.None()))
    }

    fn resume(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.resume(), |py, ()| Ok(py.None()))
    }

    fn purge(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        aio!(self, py, bridge, future, |queue| queue.purge(), number)
    }

    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn configure(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        max_len: Option<(Option<Whole>,)>,
        dead_max: Option<Whole>,
        dead_age: Option<Seconds>,
        dead_bytes: Option<Whole>,
        intake: Option<bool>,
    ) -> PyResult<u64> {
        let settings = settings(max_len, dead_max, dead_age, dead_bytes, intake);
        aio!(self, py, bridge, future, |queue| queue.configure(settings), |py, ()| Ok(py.None()))
    }
}

/// Queues for asyncio that are claimed from together.
#[pyclass(frozen)]
pub(crate) struct AioQueues(pub(crate) stanchion::Queues);

#[pymethods]
impl AioQueues {
    fn claim(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        options: &Bound<'_, ClaimOptions>,
    ) -> PyResult<u64> {
        let (queues, options) = (self.0.clone(), options.get().0.clone());
        let work = async move { queues.claim(options).await.map(Delivered::new) };
        bridge.get().start(py, future, work, claims)
    }
}
