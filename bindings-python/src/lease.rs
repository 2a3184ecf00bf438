//! Leases.

use std::sync::Arc;

use pyo3::prelude::*;
use stanchion::{LossReason, blocking};

use crate::args::{Seconds, span};
use crate::bridge::Bridge;
use crate::call::{call, turn};
use crate::error::raise;
use crate::faces::faces;
use crate::results::{IntoPython, object};

faces! {
    /// A lease of a lock.
    Lease(Arc<blocking::Lease>), AioLease(Arc<stanchion::Lease>);

    both {
        #[getter]
        fn name(&self) -> &str {
            self.0.name()
        }

        #[getter]
        fn fence(&self) -> u64 {
            self.0.fence().get()
        }

        #[getter]
        fn fences(&self) -> Vec<(String, u64)> {
            self.0.fences().into_iter().map(|(name, fence)| (name, fence.get())).collect()
        }

        #[getter]
        fn token(&self) -> &str {
            self.0.token().as_str()
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

        /// Raises if the lease is known to be gone.
        fn check(&self, py: Python<'_>) -> PyResult<()> {
            self.0.check().map_err(|error| raise(py, &error))
        }

        /// Released in the background; does not wait.
        fn let_go(&self, py: Python<'_>) {
            py.detach(|| self.0.let_go());
        }
    }

    verbs {
        fn extend(ttl: Seconds) |lease| lease.extend(ttl.0);
        fn extend_exact(ttl: Seconds) |lease| lease.extend_exact(ttl.0);
        fn downgrade() |lease| lease.downgrade();
        fn upgrade() |lease| lease.upgrade();
        fn detach(ttl: Seconds) |lease| lease.detach(ttl.0);
    }

    blocking {
        fn release(&self, py: Python<'_>, cooldown: Option<Seconds>) -> PyResult<()> {
            call(py, || match span(cooldown) {
                Some(cooldown) => self.0.release_with_cooldown(cooldown),
                None => self.0.release(),
            })
        }

        fn wait_lost(&self, py: Python<'_>, timeout: Seconds) -> PyResult<bool> {
            call(py, || Ok(self.0.wait_lost_while(timeout.0, &mut turn)))
        }
    }

    aio {
        fn release(
            &self,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            cooldown: Option<Seconds>,
        ) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            bridge.get().start(future, async move {
                match span(cooldown) {
                    Some(cooldown) => lease.release_with_cooldown(cooldown).await,
                    None => lease.release().await,
                }
            })
        }

        /// Done when the lease is lost or released.
        fn wait_lost(&self, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            let work = async move {
                lease.lost().await;
                Ok(())
            };
            bridge.get().start(future, work)
        }
    }
}

impl IntoPython for blocking::Lease {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, Lease(Arc::new(self)))
    }
}

impl IntoPython for stanchion::Lease {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, AioLease(Arc::new(self)))
    }
}
