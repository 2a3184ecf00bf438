//! Results of the core as Python sees them: plain objects, or the fields of a class of the Python package.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use pyo3::{BoundObject, IntoPyObject};
use stanchion::{
    Cancelled, Consumer, Enqueued, Error, EventPage, Holder, KeyInfo, KeyPage, LeaseHandle, LockPage, Missed,
    Overlap, QueuePage, QueueStats, Rate, Removed, Rescheduled, ScheduleInfo, ScheduleOutcome, SchedulePage,
    Synced, TaskEvent, TaskInfo, TaskPage, TaskResult, Waiter,
};

use crate::error::raise;

/// A result on its way to Python.
pub(crate) trait IntoPython {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// What pyo3 can convert by itself.
pub(crate) fn object<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> PyResult<Py<PyAny>> {
    Ok(value.into_pyobject(py).map_err(Into::into)?.into_any().unbind())
}

/// Seconds since 1970.
pub(crate) fn wall(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl IntoPython for () {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py.None())
    }
}

impl IntoPython for bool {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self)
    }
}

impl IntoPython for u64 {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self)
    }
}

impl IntoPython for usize {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self)
    }
}

impl IntoPython for String {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self)
    }
}

impl<T: IntoPython> IntoPython for Option<T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.map_or_else(|| Ok(py.None()), |value| value.into_python(py))
    }
}

impl<T: IntoPython> IntoPython for Vec<T> {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let list = PyList::empty(py);
        for value in self {
            list.append(value.into_python(py)?)?;
        }
        Ok(list.into_any().unbind())
    }
}

impl<A: IntoPython, B: IntoPython> IntoPython for (A, B) {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.0.into_python(py)?, self.1.into_python(py)?))
    }
}

/// One of many results: the object, or the exception, which is not raised.
impl<T: IntoPython> IntoPython for Result<T, Error> {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Ok(value) => value.into_python(py),
            Err(error) => Ok(raise(py, &error).into_value(py).into_any()),
        }
    }
}

impl IntoPython for LeaseHandle {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self.to_text())
    }
}

impl IntoPython for Holder {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let held_as = self.held_as.name();
        let since = self.since.map(wall);
        let remaining = self.remaining.map(|time| time.as_secs_f64());
        let whose = (held_as, self.label, self.host, self.pid, self.fence.get());
        object(py, (whose.0, whose.1, whose.2, whose.3, whose.4, since, remaining, self.waiters, self.weight))
    }
}

impl IntoPython for Waiter {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let waiting = self.waiting.map(|time| time.as_secs_f64());
        object(py, (self.label, self.host, self.pid, self.since.map(wall), waiting, self.weight))
    }
}

impl IntoPython for Consumer {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.label, self.host, self.pid, self.waiters, self.claims))
    }
}

impl IntoPython for LockPage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.names, self.next))
    }
}

impl IntoPython for QueuePage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.names, self.next))
    }
}

impl IntoPython for Enqueued {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.id, self.outcome.name(), self.version.get(), self.due.map(wall)))
    }
}

/// Whether it was removed, and the version that it has instead.
impl IntoPython for Removed {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(
            py,
            match self {
                Self::Removed => (true, None),
                Self::OtherVersion(version) => (false, Some(version.get())),
                _ => (false, None),
            },
        )
    }
}

/// How it ended, and the new due time.
impl IntoPython for Rescheduled {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(
            py,
            match self {
                Self::Moved(due) => ("moved", Some(wall(due))),
                Self::Absent => ("absent", None),
                Self::Claimed => ("claimed", None),
                Self::Dead => ("dead", None),
                _ => ("other", None),
            },
        )
    }
}

impl IntoPython for Cancelled {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let outcome = match self {
            Self::Removed => "removed",
            Self::Running => "running",
            Self::Absent => "absent",
            _ => "other",
        };
        object(py, outcome)
    }
}

/// How it ended, the result, the version, and the reason.
impl IntoPython for TaskResult {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let outcome = self.name();
        match self {
            Self::Done { result, version } => {
                object(py, (outcome, PyBytes::new(py, &result), version.get(), py.None()))
            }
            Self::Dead { reason } => object(py, (outcome, py.None(), py.None(), reason)),
            _ => object(py, (outcome, py.None(), py.None(), py.None())),
        }
    }
}

impl IntoPython for TaskEvent {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Self { number, at, what, id, version, attempt, reason, .. } = self;
        object(py, (number, wall(at), what.name(), id, version.get(), attempt, reason))
    }
}

/// The events, whether some before them are missed, and after which to go on.
impl IntoPython for EventPage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.events.into_python(py)?, self.missed, self.cursor))
    }
}

impl IntoPython for TaskPage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.tasks.into_python(py)?, self.next))
    }
}

impl IntoPython for TaskInfo {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fields = PyDict::new(py);
        fields.set_item("id", self.id)?;
        fields.set_item("state", format!("{:?}", self.state).to_lowercase())?;
        fields.set_item("payload", PyBytes::new(py, &self.payload))?;
        fields.set_item("headers", self.headers)?;
        fields.set_item("kind", self.kind)?;
        fields.set_item("timeout", self.timeout.map(|time| time.as_secs_f64()))?;
        fields.set_item("backoff", self.backoff.map(|backoff| backoff.to_string()))?;
        fields.set_item("size", self.size)?;
        fields.set_item("version", self.version.get())?;
        fields.set_item("due", wall(self.due))?;
        fields.set_item("priority", self.priority)?;
        fields.set_item("attempts", self.attempts)?;
        fields.set_item("max_attempts", self.max_attempts)?;
        fields.set_item("expires", self.expires.map(wall))?;
        fields.set_item("receipt", self.receipt.get())?;
        fields.set_item("lease_left", self.lease_left.as_secs_f64())?;
        fields.set_item("reason", self.reason)?;
        let claimed_by = self.claimed_by.map(|by| (by.label, by.host, by.pid, by.since.map(wall)));
        fields.set_item("claimed_by", claimed_by)?;
        fields.set_item("died", self.died.map(wall))?;
        fields.set_item("successor_due", self.successor_due.map(wall))?;
        let failures = self.failures.into_iter().map(|failure| (wall(failure.at), failure.reason));
        fields.set_item("failures", failures.collect::<Vec<_>>())?;
        fields.set_item("progress", PyBytes::new(py, &self.progress))?;
        fields.set_item("cancelled", self.cancelled)?;
        fields.set_item("key", self.key)?;
        Ok(fields.into_any().unbind())
    }
}

impl IntoPython for QueueStats {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fields = PyDict::new(py);
        fields.set_item("scheduled", self.scheduled)?;
        fields.set_item("ready", self.ready)?;
        fields.set_item("claimed", self.claimed)?;
        fields.set_item("held", self.held)?;
        fields.set_item("keys_waiting", self.keys_waiting)?;
        fields.set_item("next_key", self.next_key.map(|time| time.as_secs_f64()))?;
        fields.set_item("gate", self.gate.name())?;
        fields.set_item("opens_in", self.gate.opens().map(|time| time.as_secs_f64()))?;
        fields.set_item("dead", self.dead)?;
        fields.set_item("successors", self.successors)?;
        fields.set_item("paused", self.paused)?;
        fields.set_item("waiters", self.waiters)?;
        fields.set_item("next_due", self.next_due.map(|time| time.as_secs_f64()))?;
        fields.set_item("enqueued", self.enqueued)?;
        fields.set_item("acked", self.acked)?;
        fields.set_item("retried", self.retried)?;
        fields.set_item("died", self.died)?;
        fields.set_item("max_len", self.settings.max_len)?;
        fields.set_item("dead_max", self.settings.dead_max)?;
        fields.set_item("dead_age", self.settings.dead_age.as_secs_f64())?;
        fields.set_item("dead_bytes", self.settings.dead_bytes)?;
        fields.set_item("intake", self.settings.intake)?;
        fields.set_item("events", self.settings.events)?;
        fields.set_item("max_running", self.settings.max_running)?;
        fields.set_item("rate", self.settings.rate.map(rate))?;
        fields.set_item("key_concurrency", self.settings.key_concurrency)?;
        fields.set_item("key_rate", self.settings.key_rate.map(rate))?;
        fields.set_item("schedules", self.schedules)?;
        fields.set_item("schedules_late", self.schedules_late.as_secs_f64())?;
        fields.set_item("flows", self.flows)?;
        Ok(fields.into_any().unbind())
    }
}

impl IntoPython for ScheduleOutcome {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self.name())
    }
}

impl IntoPython for Synced {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.added, self.changed, self.kept, self.removed, self.newer))
    }
}

impl IntoPython for SchedulePage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.schedules.into_python(py)?, self.next))
    }
}

/// A word, or how many are fired at most; `None` if a newer version has put it.
fn missed(py: Python<'_>, missed: Option<Missed>) -> PyResult<Py<PyAny>> {
    match missed {
        Some(Missed::Last) => object(py, "last"),
        Some(Missed::Skip) => object(py, "skip"),
        Some(Missed::All(most)) => object(py, most),
        _ => Ok(py.None()),
    }
}

impl IntoPython for ScheduleInfo {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let overlap = match self.overlap {
            Overlap::Queue => "queue",
            Overlap::Skip => "skip",
            _ => "other",
        };
        let fields = PyDict::new(py);
        fields.set_item("id", self.id)?;
        fields.set_item("when", self.when)?;
        fields.set_item("tz", self.tz)?;
        fields.set_item("missed", missed(py, self.missed)?)?;
        fields.set_item("overlap", overlap)?;
        fields.set_item("jitter", self.jitter.as_secs_f64())?;
        fields.set_item("starts", self.starts.map(wall))?;
        fields.set_item("ends", self.ends.map(wall))?;
        fields.set_item("paused", self.paused)?;
        fields.set_item("next", self.next.map(wall))?;
        fields.set_item("late", self.late.as_secs_f64())?;
        fields.set_item("owner", self.owner)?;
        fields.set_item("fired", self.fired)?;
        fields.set_item("skipped", self.skipped)?;
        fields.set_item("missed_slots", self.missed_slots)?;
        fields.set_item("last_task", self.last_task)?;
        fields.set_item("priority", self.priority)?;
        fields.set_item("max_attempts", self.max_attempts)?;
        fields.set_item("expires", self.expires.map(|time| time.as_secs_f64()))?;
        fields.set_item("size", self.size)?;
        fields.set_item("key", self.key)?;
        Ok(fields.into_any().unbind())
    }
}

/// Count, seconds and burst.
fn rate(rate: Rate) -> (u32, f64, u32) {
    (rate.count, rate.per.as_secs_f64(), rate.burst)
}

/// The last is what it has of its own: concurrency, rate and weight.
impl IntoPython for KeyInfo {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let opens_in = self.opens_in.map(|time| time.as_secs_f64());
        let own = self.limits.map(|own| (own.concurrency, own.rate.map(rate), own.weight));
        object(py, (self.key, self.running, self.in_line, self.held, opens_in, own))
    }
}

impl IntoPython for KeyPage {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, (self.keys.into_python(py)?, self.next))
    }
}
