//! Cached values.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stanchion::{Begun, blocking};

use crate::args::{Flag, Real, Seconds, Text};
use crate::faces::faces;
use crate::results::{IntoPython, object};

/// How a value is cached and computed.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct CachedOptions(pub(crate) stanchion::CachedOptions);

#[pymethods]
impl CachedOptions {
    #[new]
    #[pyo3(signature = (ttl, *, stale=None, beta=None, wait=None, lease=None, max_run=None, without_store=None, label=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        ttl: Seconds,
        stale: Option<Seconds>,
        beta: Option<Real>,
        wait: Option<Seconds>,
        lease: Option<Seconds>,
        max_run: Option<Seconds>,
        without_store: Option<Flag>,
        label: Option<Text>,
    ) -> Self {
        let mut options = stanchion::CachedOptions::new(ttl.0);
        if let Some(stale) = stale {
            options = options.stale(stale.0);
        }
        if let Some(beta) = beta {
            options = options.beta(beta.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(lease) = lease {
            options = options.lease(lease.0);
        }
        if let Some(max_run) = max_run {
            options = options.max_run(max_run.0);
        }
        if let Some(without_store) = without_store {
            options = options.without_store(without_store.0);
        }
        if let Some(label) = label {
            options = options.label(label.0);
        }
        Self(options)
    }
}

faces! {
    /// The right to compute a value.
    Ticket(Arc<blocking::Ticket>), AioTicket(Arc<stanchion::Ticket>);

    both {
        /// Left to the next caller in the background; does not wait.
        fn let_go(&self, py: Python<'_>) {
            py.detach(|| self.0.let_go());
        }
    }

    verbs {
        fn store(value: Vec<u8>) |ticket| ticket.store(value);
    }

    blocking {}

    aio {}
}

impl IntoPython for blocking::Begun {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Value(value) => Ok(PyBytes::new(py, &value).into_any().unbind()),
            Self::Compute(ticket) => object(py, Ticket(Arc::new(ticket))),
        }
    }
}

impl IntoPython for Begun {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Value(value) => Ok(PyBytes::new(py, &value).into_any().unbind()),
            Self::Compute(ticket) => object(py, AioTicket(Arc::new(ticket))),
        }
    }
}
