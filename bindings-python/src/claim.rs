//! Claims.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stanchion::{LossReason, Retry, blocking};

use crate::args::{Data, Seconds, Text};
use crate::bridge::Bridge;
use crate::call::{call, turn};
use crate::error::{invalid, raise, wrong};
use crate::faces::faces;
use crate::results::{IntoPython, object, wall};

faces! {
    /// A claim of a queue.
    Claim(blocking::Claim), AioClaim(stanchion::Claim);

    both {
        #[getter]
        fn id(&self) -> &str {
            self.0.id()
        }

        #[getter]
        fn queue(&self) -> &str {
            self.0.queue()
        }

        #[getter]
        fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, self.0.payload())
        }

        #[getter]
        fn headers(&self) -> stanchion::Headers {
            self.0.headers().clone()
        }

        #[getter]
        fn kind(&self) -> Option<&str> {
            self.0.kind()
        }

        #[getter]
        fn attempt(&self) -> u32 {
            self.0.attempt()
        }

        #[getter]
        fn max_attempts(&self) -> u32 {
            self.0.max_attempts()
        }

        #[getter]
        fn receipt(&self) -> u64 {
            self.0.receipt().get()
        }

        #[getter]
        fn version(&self) -> u64 {
            self.0.version().get()
        }

        #[getter]
        fn priority(&self) -> u8 {
            self.0.priority()
        }

        #[getter]
        fn key(&self) -> Option<&str> {
            self.0.key()
        }

        #[getter]
        fn flow(&self) -> Option<&str> {
            self.0.flow()
        }

        #[getter]
        fn due(&self) -> f64 {
            wall(self.0.due())
        }

        #[getter]
        fn remaining(&self) -> f64 {
            self.0.remaining().as_secs_f64()
        }

        #[getter]
        fn valid(&self) -> bool {
            self.0.is_valid()
        }

        #[getter]
        fn loss(&self) -> Option<&'static str> {
            self.0.loss().map(LossReason::name)
        }

        fn acked(&self, py: Python<'_>, result: Option<Data>) -> PyResult<Verdict> {
            let Some(Data(result)) = result else { return Ok(Verdict::of(self.0.acked())) };
            self.0.acked_with(&result).map(Verdict::of).map_err(|error| raise(py, &error))
        }

        fn nacked(&self, py: Python<'_>, delay: Option<Seconds>, reason: Text) -> PyResult<Verdict> {
            let verdict = self.0.nacked(retry(delay), &reason.0);
            verdict.map(Verdict::of).map_err(|error| raise(py, &error))
        }

        fn buried(&self, reason: Text) -> Verdict {
            Verdict::of(self.0.buried(&reason.0))
        }

        fn returned(&self, py: Python<'_>, delay: Option<Seconds>) -> PyResult<Verdict> {
            let verdict = self.0.returned(at_once(delay));
            verdict.map(Verdict::of).map_err(|error| raise(py, &error))
        }

        fn throttled(&self, py: Python<'_>, time: Seconds) -> PyResult<Verdict> {
            self.0.throttled(time.0).map(Verdict::of).map_err(|error| raise(py, &error))
        }
    }

    verbs {
        fn nack(delay: Option<Seconds>, reason: Text) |claim| claim.nack(retry(delay), &reason.0);
        fn bury(reason: Text) |claim| claim.bury(&reason.0);
        fn put_back(delay: Option<Seconds>) |claim| claim.put_back(at_once(delay));
        fn throttle(time: Seconds) |claim| claim.throttle(time.0);
        fn extend(lease: Seconds) |claim| claim.extend(lease.0);
        fn progress(progress: Data) |claim| claim.progress(&progress.0);
        fn inputs() |claim| claim.inputs();
    }

    blocking {
        fn ack(&self, py: Python<'_>, result: Option<Data>) -> PyResult<()> {
            call(py, || match result {
                Some(Data(result)) => self.0.ack_with(&result),
                None => self.0.ack(),
            })
        }

        fn wait_lost(&self, py: Python<'_>, timeout: Seconds) -> PyResult<bool> {
            call(py, || Ok(self.0.wait_lost_while(timeout.0, &mut turn)))
        }
    }

    aio {
        fn ack(&self, bridge: &Bound<'_, Bridge>, future: Py<PyAny>, result: Option<Data>) -> PyResult<u64> {
            let claim = self.0.clone();
            let work = async move {
                match result {
                    Some(Data(result)) => claim.ack_with(&result).await,
                    None => claim.ack().await,
                }
            };
            bridge.get().start(future, work)
        }

        /// Done when the claim is lost or settled.
        fn wait_lost(&self, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let claim = self.0.clone();
            let work = async move {
                claim.lost().await;
                Ok(())
            };
            bridge.get().start(future, work)
        }

        /// Gives the task back in the background: nobody heard of the claim.
        fn forget(&self) {
            self.0.put_back_unheard();
        }
    }
}

/// When a task comes back that was not tried: without a delay at once.
fn at_once(delay: Option<Seconds>) -> Duration {
    delay.map_or(Duration::ZERO, |delay| delay.0)
}

/// When a failed task is tried again: without a delay, by the core's backoff.
fn retry(delay: Option<Seconds>) -> Retry {
    delay.map_or(Retry::Backoff, |delay| Retry::After(delay.0))
}

impl IntoPython for blocking::Claim {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, Claim(self))
    }
}

/// Claims on their way to an event loop: if nobody takes them, the tasks go back.
pub(crate) struct Delivered(pub(crate) Vec<stanchion::Claim>);

impl IntoPython for Delivered {
    fn into_python(mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, mem::take(&mut self.0).into_iter().map(AioClaim).collect::<Vec<AioClaim>>())
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        self.0.iter().for_each(stanchion::Claim::put_back_unheard);
    }
}

/// How a claim ended, to be settled with others. It can be settled once; the claim itself repeats.
#[pyclass(frozen)]
pub(crate) struct Verdict(Mutex<Option<stanchion::Verdict>>);

impl Verdict {
    fn of(verdict: stanchion::Verdict) -> Self {
        Self(Mutex::new(Some(verdict)))
    }
}

/// A verdict as an argument.
pub(crate) struct Taken(pub(crate) stanchion::Verdict);

impl<'a, 'py> FromPyObject<'a, 'py> for Taken {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let problem =
            "must be what acked(), nacked(), buried(), returned() or throttled() of a claim have made";
        let verdict = value.cast::<Verdict>().map_err(|_| wrong(&value, problem))?;
        let taken = verdict.get().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(Self).ok_or_else(|| invalid(value.py(), "the verdict was settled already"))
    }
}

pub(crate) fn taken(verdicts: Vec<Taken>) -> Vec<stanchion::Verdict> {
    verdicts.into_iter().map(|verdict| verdict.0).collect()
}
