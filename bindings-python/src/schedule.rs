//! Schedules to put in.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::args::{Flag, Missed, Overlap, Seconds, Text, Wall, Whole};
use crate::call::call;
use crate::error::invalid;
use crate::results::wall;

/// A schedule to put in.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Schedule(pub(crate) stanchion::Schedule);

#[pymethods]
impl Schedule {
    #[new]
    #[pyo3(signature = (id, when, payload, *, tz, missed, overlap, paused, jitter=None, starts=None, ends=None, headers=None, priority=None, max_attempts=None, expires=None, key=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        id: Text,
        when: Text,
        payload: &Bound<'_, PyBytes>,
        tz: Text,
        missed: Missed,
        overlap: Overlap,
        paused: Flag,
        jitter: Option<Seconds>,
        starts: Option<Wall>,
        ends: Option<Wall>,
        headers: Option<BTreeMap<Text, Text>>,
        priority: Option<Whole>,
        max_attempts: Option<Whole>,
        expires: Option<Seconds>,
        key: Option<Text>,
    ) -> PyResult<Self> {
        let mut schedule = stanchion::Schedule::new(id.0, when.0).payload(payload.as_bytes());
        schedule = schedule.tz(tz.0).missed(missed.0).overlap(overlap.0).paused(paused.0);
        if let Some(jitter) = jitter {
            schedule = schedule.jitter(jitter.0);
        }
        if let Some(starts) = starts {
            schedule = schedule.starts(starts.0);
        }
        if let Some(ends) = ends {
            schedule = schedule.ends(ends.0);
        }
        for (name, value) in headers.unwrap_or_default() {
            schedule = schedule.header(name.0, value.0);
        }
        if let Some(Whole(priority)) = priority {
            let priority = u8::try_from(priority);
            schedule =
                schedule.priority(priority.map_err(|_| invalid(py, "priority must be between 0 and 255"))?);
        }
        if let Some(max_attempts) = max_attempts {
            schedule = schedule.max_attempts(max_attempts.narrow(u32::MAX));
        }
        if let Some(expires) = expires {
            schedule = schedule.expires(expires.0);
        }
        if let Some(key) = key {
            schedule = schedule.key(key.0);
        }
        Ok(Self(schedule))
    }

    /// When its next slots are due, in seconds since 1970.
    fn preview(&self, py: Python<'_>, after: Wall, count: Whole) -> PyResult<Vec<f64>> {
        let times = call(py, || self.0.preview(after.0, count.narrow(usize::MAX)))?;
        Ok(times.into_iter().map(wall).collect())
    }
}

pub(crate) fn schedules(schedules: Vec<Schedule>) -> Vec<stanchion::Schedule> {
    schedules.into_iter().map(|schedule| schedule.0).collect()
}
