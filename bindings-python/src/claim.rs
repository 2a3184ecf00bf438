//! Claims.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stanchion::{Retry, blocking};

use crate::bridge::Bridge;
use crate::call::call;
use crate::convert::{Seconds, Text, wall};
use crate::error::raise;
use crate::runtime::runtime;

/// How a claim ended, to be settled with others.
#[pyclass]
pub(crate) struct Verdict(Option<stanchion::Verdict>);

impl Verdict {
    /// A verdict can be settled once; the claim itself repeats.
    pub(crate) fn take(&mut self, py: Python<'_>) -> PyResult<stanchion::Verdict> {
        self.0.take().ok_or_else(|| crate::error::invalid(py, "the verdict was settled already"))
    }
}

/// When a failed task is tried again: without a delay, by the core's backoff.
fn retry(delay: Option<Seconds>) -> Retry {
    delay.map_or(Retry::Backoff, |delay| Retry::After(delay.0))
}

/// What both faces of a claim tell without I/O, and what only one can do.
macro_rules! claim {
    ($(#[$doc:meta])* $class:ident, $core:ty, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref)]
        pub(crate) struct $class(pub(crate) $core);

        #[pymethods]
        impl $class {
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
            fn attempt(&self) -> u32 {
                self.0.attempt()
            }

            #[getter]
            fn max_attempts(&self) -> u32 {
                self.0.max_attempts()
            }

            #[getter]
            fn receipt(&self) -> u64 {
                self.0.receipt()
            }

            #[getter]
            fn version(&self) -> u64 {
                self.0.version()
            }

            #[getter]
            fn priority(&self) -> u8 {
                self.0.priority()
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
            fn loss(&self) -> Option<String> {
                self.0.loss().map(|reason| format!("{reason:?}"))
            }

            fn acked(&self) -> Verdict {
                Verdict(Some(self.0.clone().acked()))
            }

            fn nacked(&self, py: Python<'_>, delay: Option<Seconds>, reason: Text) -> PyResult<Verdict> {
                let verdict = self.0.clone().nacked(retry(delay), &reason.0);
                verdict.map(|verdict| Verdict(Some(verdict))).map_err(|error| raise(py, &error))
            }

            fn buried(&self, reason: Text) -> Verdict {
                Verdict(Some(self.0.clone().buried(&reason.0)))
            }

            fn returned(&self) -> Verdict {
                Verdict(Some(self.0.clone().returned()))
            }

            $($own)*
        }
    };
}

claim!(
    /// A claim of a blocking queue.
    Claim,
    blocking::Claim,
    {
        fn ack(&self, py: Python<'_>) -> PyResult<()> {
            call(py, || self.0.ack())
        }

        fn nack(&self, py: Python<'_>, delay: Option<Seconds>, reason: Text) -> PyResult<()> {
            call(py, || self.0.nack(retry(delay), &reason.0))
        }

        fn bury(&self, py: Python<'_>, reason: Text) -> PyResult<()> {
            call(py, || self.0.bury(&reason.0))
        }

        fn put_back(&self, py: Python<'_>) -> PyResult<()> {
            call(py, || self.0.put_back())
        }

        fn extend(&self, py: Python<'_>, lease: Seconds) -> PyResult<()> {
            call(py, || self.0.extend(lease.0))
        }

        fn wait_lost(&self, py: Python<'_>, time: Seconds) -> PyResult<bool> {
            call(py, || Ok(self.0.wait_lost_while(time.0, &mut crate::call::turn)))
        }
    }
);

claim!(
    /// A claim of a queue for asyncio.
    AioClaim,
    stanchion::Claim,
    {
        fn ack(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let claim = self.0.clone();
            bridge.get().start(py, future, async move { claim.ack().await }, |py, ()| Ok(py.None()))
        }

        fn nack(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            delay: Option<Seconds>,
            reason: Text,
        ) -> PyResult<u64> {
            let claim = self.0.clone();
            let work = async move { claim.nack(retry(delay), &reason.0).await };
            bridge.get().start(py, future, work, |py, ()| Ok(py.None()))
        }

        fn bury(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            reason: Text,
        ) -> PyResult<u64> {
            let claim = self.0.clone();
            bridge.get().start(py, future, async move { claim.bury(&reason.0).await }, |py, ()| Ok(py.None()))
        }

        fn put_back(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let claim = self.0.clone();
            bridge.get().start(py, future, async move { claim.put_back().await }, |py, ()| Ok(py.None()))
        }

        fn extend(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            lease: Seconds,
        ) -> PyResult<u64> {
            let claim = self.0.clone();
            bridge.get().start(py, future, async move { claim.extend(lease.0).await }, |py, ()| Ok(py.None()))
        }

        /// Done when the claim is lost or settled.
        fn wait_lost(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let claim = self.0.clone();
            let work = async move {
                claim.lost().await;
                Ok(())
            };
            bridge.get().start(py, future, work, |py, ()| Ok(py.None()))
        }

        /// Gives the task back in the background: nobody heard of the claim.
        fn forget(&self) -> PyResult<()> {
            give_back(vec![self.0.clone()])
        }
    }
);

/// Gives tasks back in the background, without counting an attempt.
fn give_back(claims: Vec<stanchion::Claim>) -> PyResult<()> {
    runtime()?.spawn(async move {
        for claim in claims {
            // If this fails, the task comes back when its lease ends.
            let _ = claim.put_back().await;
        }
    });
    Ok(())
}

/// Claims on their way to Python: if nobody takes them, the tasks go back.
pub(crate) struct Delivered(Vec<stanchion::Claim>);

impl Delivered {
    pub(crate) fn new(claims: Vec<stanchion::Claim>) -> Self {
        Self(claims)
    }

    pub(crate) fn take(mut self) -> impl Iterator<Item = AioClaim> {
        std::mem::take(&mut self.0).into_iter().map(AioClaim)
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let _ = give_back(std::mem::take(&mut self.0));
        }
    }
}
