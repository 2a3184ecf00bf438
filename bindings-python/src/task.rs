//! Tasks to put in, and how to take them out.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stanchion::{OnDuplicate, Receipt};

use crate::args::{Backoff, Flag, Seconds, Text, Wall, Whole};
use crate::error::{invalid, raise};

/// A task to put in.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Task(pub(crate) stanchion::Task);

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (id, payload, *, headers=None, delay=None, due=None, priority=None, max_attempts=None, expires=None, on_duplicate=None, kind=None, timeout=None, backoff=None, keep_result=None, key=None))]
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
        kind: Option<Text>,
        timeout: Option<Seconds>,
        backoff: Option<Backoff>,
        keep_result: Option<Seconds>,
        key: Option<Text>,
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
            task = task.priority(priority.map_err(|_| invalid(py, "priority must be between 0 and 255"))?);
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
                ("skip", _) => OnDuplicate::Skip,
                ("replace", _) => OnDuplicate::Replace,
                ("debounce", Some(Seconds(max_wait))) => OnDuplicate::Debounce { max_wait },
                ("throttle", Some(Seconds(window))) => OnDuplicate::Throttle { window },
                _ => return Err(invalid(py, "on_duplicate is Keep, Skip, Replace, Debounce or Throttle")),
            });
        }
        if let Some(kind) = kind {
            task = task.kind(kind.0);
        }
        if let Some(timeout) = timeout {
            task = task.timeout(timeout.0);
        }
        if let Some(backoff) = backoff {
            task = task.backoff(backoff.0);
        }
        if let Some(keep_result) = keep_result {
            task = task.keep_result(keep_result.0);
        }
        if let Some(key) = key {
            task = task.key(key.0);
        }
        Ok(Self(task))
    }

    /// Fails as an enqueue would.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.0.check().map_err(|error| raise(py, &error))
    }
}

pub(crate) fn tasks(tasks: Vec<Task>) -> Vec<stanchion::Task> {
    tasks.into_iter().map(|task| task.0).collect()
}

/// How to claim.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct ClaimOptions(pub(crate) stanchion::ClaimOptions);

#[pymethods]
impl ClaimOptions {
    #[new]
    #[pyo3(signature = (*, max=None, lease=None, renew=None, max_run=None, timeout=None, wait=None))]
    fn new(
        max: Option<Whole>,
        lease: Option<Seconds>,
        renew: Option<Flag>,
        max_run: Option<Seconds>,
        timeout: Option<Seconds>,
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
            options = options.renew(renew.0);
        }
        if let Some(max_run) = max_run {
            options = options.max_run(max_run.0);
        }
        if let Some(timeout) = timeout {
            options = options.timeout(timeout.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        Self(options)
    }
}

/// Which dead tasks are meant. Of ids, receipts and a count one at most is given, which the package sees to.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct DeadTasks(pub(crate) stanchion::DeadTasks);

#[pymethods]
impl DeadTasks {
    #[new]
    #[pyo3(signature = (*, ids=None, receipts=None, count=None, reason, prefix, older_than=None))]
    fn new(
        ids: Option<Vec<Text>>,
        receipts: Option<Vec<Whole>>,
        count: Option<Whole>,
        reason: Text,
        prefix: Text,
        older_than: Option<Seconds>,
    ) -> Self {
        let dead = match (ids, receipts, count) {
            (Some(ids), ..) => stanchion::DeadTasks::ids(ids.into_iter().map(|id| id.0)),
            (_, Some(receipts), _) => {
                stanchion::DeadTasks::receipts(receipts.into_iter().map(|one| Receipt::new(one.0)))
            }
            (.., Some(count)) => stanchion::DeadTasks::oldest(count.0),
            _ => stanchion::DeadTasks::all(),
        };
        let dead = dead.reason(reason.0).prefix(prefix.0);
        Self(match older_than {
            Some(age) => dead.older_than(age.0),
            None => dead,
        })
    }
}
