//! Arguments: what Python passes, checked and converted before anything is sent. What is wrong with one reads on from its
//! name: see `error::wrong`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDelta, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};
use stanchion::{LeaseHandle, Missed as MissedSlots, Overlap as OverlapPolicy, TaskState};

use crate::error::{raise, wrong};

/// Seconds beyond this do not fit anywhere; the core has narrower limits of its own.
const MOST_SECONDS: f64 = 1e15;

/// A time span: seconds as `float` or `int`, or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let span = match value.cast::<PyDelta>() {
            Ok(delta) => delta.call_method0("total_seconds")?.extract::<f64>()?,
            Err(_) => number(&value, "must be a number of seconds or a timedelta")?,
        };
        let span = Some(span).filter(|span| (0.0..=MOST_SECONDS).contains(span));
        let span = span.and_then(|span| Duration::try_from_secs_f64(span).ok());
        let wrong = || wrong(&value, "must be a time span from 0 s on");
        span.map(Self).ok_or_else(wrong)
    }
}

/// A point in time: seconds since 1970.
pub(crate) struct Wall(pub(crate) SystemTime);

impl<'a, 'py> FromPyObject<'a, 'py> for Wall {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let problem = "must be a datetime or a number of seconds since 1970";
        let seconds = number(&value, problem)?;
        let wrong = || wrong(&value, problem);
        if !seconds.is_finite() || seconds > MOST_SECONDS {
            return Err(wrong());
        }
        // The core takes any time before 1970 for long past. Stores count milliseconds, floats cannot count
        // nanoseconds: the nearest microsecond is what was meant.
        let micros = Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|_| wrong())?.as_nanos();
        let micros = u64::try_from((micros + 500) / 1_000).map_err(|_| wrong())?;
        UNIX_EPOCH.checked_add(Duration::from_micros(micros)).map(Self).ok_or_else(wrong)
    }
}

/// Any number.
#[derive(Clone, Copy)]
pub(crate) struct Real(pub(crate) f64);

impl<'a, 'py> FromPyObject<'a, 'py> for Real {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        number(&value, "must be a number").map(Self)
    }
}

/// A whole number from zero on.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
        let whole = is_number.then(|| value.extract::<u64>().ok()).flatten();
        whole.map(Self).ok_or_else(|| wrong(&value, "must be a whole number from 0 on"))
    }
}

impl Whole {
    /// As a smaller type; what does not fit becomes its largest value, which the core refuses.
    pub(crate) fn narrow<T: TryFrom<u64>>(self, largest: T) -> T {
        T::try_from(self.0).unwrap_or(largest)
    }
}

/// A whole number from zero on, of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct Few(pub(crate) u32);

impl<'a, 'py> FromPyObject<'a, 'py> for Few {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Whole(count) = value.extract()?;
        u32::try_from(count).map(Self).map_err(|_| wrong(&value, "must be below 2^32"))
    }
}

/// Text without lone surrogates.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = value.cast::<PyString>().ok().and_then(|text| text.extract::<String>().ok());
        text.map(Self).ok_or_else(|| wrong(&value, "must be a text that UTF-8 can encode"))
    }
}

/// Bytes, or a text as UTF-8.
pub(crate) struct Data(pub(crate) Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Data {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = value.cast::<PyByteArray>() {
            return Ok(Self(bytes.to_vec()));
        }
        if value.is_instance_of::<PyMemoryView>() {
            return value.call_method0("tobytes")?.extract().map(Self);
        }
        let text = value.extract::<Text>().map(|text| Self(text.0.into_bytes()));
        text.map_err(|_| wrong(&value, "must be bytes, or a text that UTF-8 can encode"))
    }
}

/// A yes or no.
#[derive(Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

impl<'a, 'py> FromPyObject<'a, 'py> for Flag {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let flag = value.cast::<PyBool>().map(|flag| Self(flag.is_true()));
        flag.map_err(|_| wrong(&value, "must be True or False"))
    }
}

/// Where a file is.
pub(crate) struct File(pub(crate) PathBuf);

impl<'a, 'py> FromPyObject<'a, 'py> for File {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let path = value.extract().map(Self);
        path.map_err(|_| wrong(&value, "must be the path of a file"))
    }
}

/// The time of an option that may be absent.
pub(crate) fn span(seconds: Option<Seconds>) -> Option<Duration> {
    seconds.map(|Seconds(span)| span)
}

/// A lease's handle in its text form.
pub(crate) struct Handle(pub(crate) LeaseHandle);

impl<'a, 'py> FromPyObject<'a, 'py> for Handle {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Text(text) = value.extract()?;
        text.parse().map(Self).map_err(|error| raise(value.py(), &error))
    }
}

/// The name of a task's state.
pub(crate) struct State(pub(crate) TaskState);

impl<'a, 'py> FromPyObject<'a, 'py> for State {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Text(name) = value.extract()?;
        Ok(Self(match &*name {
            "scheduled" => TaskState::Scheduled,
            "ready" => TaskState::Ready,
            "claimed" => TaskState::Claimed,
            "held" => TaskState::Held,
            "dead" => TaskState::Dead,
            _ => return Err(wrong(&value, "must be scheduled, ready, claimed, held or dead")),
        }))
    }
}

/// What becomes of missed slots: a word, or how many of them are fired at most.
pub(crate) struct Missed(pub(crate) MissedSlots);

impl<'a, 'py> FromPyObject<'a, 'py> for Missed {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let told = match (value.extract::<Text>(), value.extract::<Whole>()) {
            (Ok(Text(word)), _) if word == "last" => Some(MissedSlots::Last),
            (Ok(Text(word)), _) if word == "skip" => Some(MissedSlots::Skip),
            (_, Ok(most)) => Some(MissedSlots::All(most.narrow(u32::MAX))),
            _ => None,
        };
        told.map(Self).ok_or_else(|| wrong(&value, "must be last, skip or a whole number from 1 on"))
    }
}

/// What becomes of a slot while the task of the one before lives.
pub(crate) struct Overlap(pub(crate) OverlapPolicy);

impl<'a, 'py> FromPyObject<'a, 'py> for Overlap {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let told = match value.extract::<Text>() {
            Ok(Text(word)) if word == "queue" => Some(OverlapPolicy::Queue),
            Ok(Text(word)) if word == "skip" => Some(OverlapPolicy::Skip),
            _ => None,
        };
        told.map(Self).ok_or_else(|| wrong(&value, "must be queue or skip"))
    }
}

/// How long a failed task waits: pauses, or base, factor, max and jitter, as the package has put them.
pub(crate) struct Backoff(pub(crate) stanchion::Backoff);

impl<'a, 'py> FromPyObject<'a, 'py> for Backoff {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(exponential) = value.cast::<PyTuple>() {
            let (base, factor, max, jitter): (Seconds, Real, Seconds, Real) = exponential.extract()?;
            let backoff = stanchion::Backoff::exponential(base.0).factor(factor.0).max(max.0);
            return Ok(Self(backoff.jitter(jitter.0)));
        }
        let pauses: Vec<Seconds> = value.extract()?;
        Ok(Self(stanchion::Backoff::list(pauses.into_iter().map(|pause| pause.0))))
    }
}

/// A number that is not a bool.
fn number(value: &Bound<'_, PyAny>, problem: &str) -> PyResult<f64> {
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !is_number || value.is_instance_of::<PyBool>() {
        return Err(wrong(value, problem));
    }
    // An int may be too large.
    value.extract::<f64>().map_err(|_| wrong(value, problem))
}
