//! Limiters.

use pyo3::prelude::*;
use stanchion::{Limit, Taken, blocking};

use crate::args::{Seconds, Text, Whole};
use crate::error::invalid;
use crate::faces::faces;
use crate::results::{IntoPython, object};

/// What a limiter allows. Numbers that do not fit become ones that the core refuses.
pub(crate) fn limit(
    py: Python<'_>,
    kind: &Text,
    n: Whole,
    per: Seconds,
    burst: Option<Whole>,
) -> PyResult<Limit> {
    let (n, per) = (n.narrow(u32::MAX), per.0);
    let limit = match &*kind.0 {
        "gcra" => Limit::rate(n, per),
        "fixed-window" => Limit::fixed_window(n, per),
        "sliding-window" => Limit::sliding_window(n, per),
        _ => return Err(invalid(py, "limiter(): kind must be 'gcra', 'fixed-window' or 'sliding-window'")),
    };
    Ok(burst.map_or(limit, |burst| limit.burst(burst.narrow(u32::MAX))))
}

/// Seconds until a try succeeds; none if it was allowed.
impl IntoPython for Taken {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, self.retry_after().map(|time| time.as_secs_f64()))
    }
}

faces! {
    /// A limiter.
    Limiter(blocking::Limiter), AioLimiter(stanchion::Limiter);

    both {
        #[getter]
        fn name(&self) -> &str {
            self.0.name()
        }
    }

    verbs {
        fn try_take(n: Whole) |limiter| limiter.try_take(n.narrow(u32::MAX));
        fn take(n: Whole, wait: Seconds) |limiter| limiter.take(n.narrow(u32::MAX), wait.0);
    }

    blocking {}
    aio {}
}
