//! Leases.

use std::sync::Arc;

use pyo3::prelude::*;
use stanchion::blocking;

use crate::bridge::Bridge;
use crate::call::call;
use crate::convert::{Seconds, span};
use crate::error::raise;

/// What both faces of a lease tell without I/O, and what only one can do.
macro_rules! lease {
    ($(#[$doc:meta])* $class:ident, $core:ty, { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref)]
        pub(crate) struct $class(Arc<$core>);

        impl $class {
            pub(crate) fn of(lease: $core) -> Self {
                Self(Arc::new(lease))
            }
        }

        #[pymethods]
        impl $class {
            #[getter]
            fn name(&self) -> &str {
                self.0.name()
            }

            #[getter]
            fn fence(&self) -> u64 {
                self.0.fence()
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

            /// Raises if the lease is known to be gone.
            fn check(&self, py: Python<'_>) -> PyResult<()> {
                self.0.check().map_err(|error| raise(py, &error))
            }

            #[getter]
            fn loss(&self) -> Option<String> {
                self.0.loss().map(|reason| format!("{reason:?}"))
            }

            $($own)*
        }
    };
}

lease!(
    /// A lease of a blocking lock.
    Lease,
    blocking::Lease,
    {
        fn extend(&self, py: Python<'_>, ttl: Seconds) -> PyResult<()> {
            call(py, || self.0.extend(ttl.0))
        }

        fn release(&self, py: Python<'_>, cooldown: Option<Seconds>) -> PyResult<()> {
            call(py, || self.0.release_shared(span(cooldown)))
        }

        #[allow(clippy::wrong_self_convention, reason = "a Python object cannot be consumed")]
        fn into_handle(&self, py: Python<'_>, ttl: Seconds) -> PyResult<String> {
            Ok(call(py, || self.0.into_handle_shared(ttl.0))?.to_text())
        }

        fn wait_lost(&self, py: Python<'_>, time: Seconds) -> PyResult<bool> {
            call(py, || Ok(self.0.wait_lost_while(time.0, &mut crate::call::turn)))
        }
    }
);

lease!(
    /// A lease of a lock for asyncio.
    AioLease,
    stanchion::Lease,
    {
        fn extend(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            ttl: Seconds,
        ) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            bridge.get().start(py, future, async move { lease.extend(ttl.0).await }, |py, ()| Ok(py.None()))
        }

        fn release(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            cooldown: Option<Seconds>,
        ) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            let work = async move { lease.release_shared(span(cooldown)).await };
            bridge.get().start(py, future, work, |py, ()| Ok(py.None()))
        }

        #[allow(clippy::wrong_self_convention, reason = "a Python object cannot be consumed")]
        fn into_handle(
            &self,
            py: Python<'_>,
            bridge: &Bound<'_, Bridge>,
            future: Py<PyAny>,
            ttl: Seconds,
        ) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            let work = async move { lease.into_handle_shared(ttl.0).await };
            bridge.get().start(py, future, work, |py, handle| {
                Ok(handle.to_text().into_pyobject(py)?.into_any().unbind())
            })
        }

        /// Done when the lease is lost or released.
        fn wait_lost(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
            let lease = Arc::clone(&self.0);
            let work = async move {
                lease.lost().await;
                Ok(())
            };
            bridge.get().start(py, future, work, |py, ()| Ok(py.None()))
        }
    }
);

impl AioLease {
    /// As the result of an acquire.
    pub(crate) fn made(py: Python<'_>, lease: stanchion::Lease) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self::of(lease))?.into_any())
    }
}
