//! Settings of a queue, and limits of keys.

use pyo3::prelude::*;

use crate::args::{Few, Flag, Seconds, Whole};

/// So many per time: count, per and burst, as the package has put them.
pub(crate) struct Rate(stanchion::Rate);

impl<'a, 'py> FromPyObject<'a, 'py> for Rate {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (Few(count), Seconds(per), Few(burst)) = value.extract()?;
        Ok(Self(stanchion::Rate::new(count, per).burst(burst)))
    }
}

/// What a key has of its own.
pub(crate) struct KeyLimits(stanchion::KeyLimits);

impl KeyLimits {
    /// `None` if nothing is given: the key has those of the queue.
    pub(crate) fn new(concurrency: Option<Few>, rate: Option<Rate>, weight: Option<Few>) -> Option<Self> {
        if concurrency.is_none() && rate.is_none() && weight.is_none() {
            return None;
        }
        let mut limits = stanchion::KeyLimits::new();
        if let Some(most) = concurrency {
            limits = limits.concurrency(most.0);
        }
        if let Some(rate) = rate {
            limits = limits.rate(rate.0);
        }
        if let Some(weight) = weight {
            limits = limits.weight(weight.0);
        }
        Some(Self(limits))
    }

    pub(crate) fn core(limits: Option<Self>) -> Option<stanchion::KeyLimits> {
        limits.map(|limits| limits.0)
    }
}

/// Settings to change. Of some, whether they are to be changed, too: `None` is a value.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct QueueConfig(pub(crate) stanchion::QueueConfig);

#[pymethods]
impl QueueConfig {
    #[new]
    #[pyo3(signature = (*, max_len=None, dead_max=None, dead_age=None, dead_bytes=None, intake=None, events=None, max_running=None, rate=None, key_concurrency=None, key_rate=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        max_len: Option<(Option<Whole>,)>,
        dead_max: Option<Whole>,
        dead_age: Option<Seconds>,
        dead_bytes: Option<Whole>,
        intake: Option<Flag>,
        events: Option<Whole>,
        max_running: Option<(Option<Whole>,)>,
        rate: Option<(Option<Rate>,)>,
        key_concurrency: Option<(Option<Few>,)>,
        key_rate: Option<(Option<Rate>,)>,
    ) -> Self {
        let mut settings = stanchion::QueueConfig::new();
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
        if let Some(Whole(count)) = events {
            settings = settings.events(count);
        }
        if let Some((most,)) = max_running {
            settings = settings.max_running(most.map(|most| most.0));
        }
        if let Some((rate,)) = rate {
            settings = settings.rate(rate.map(|rate| rate.0));
        }
        if let Some((most,)) = key_concurrency {
            settings = settings.key_concurrency(most.map(|most| most.0));
        }
        if let Some((rate,)) = key_rate {
            settings = settings.key_rate(rate.map(|rate| rate.0));
        }
        Self(settings)
    }
}
