//! Locks.

use pyo3::prelude::*;
use stanchion::{HeldAs, Holder, blocking};

use crate::bridge::Bridge;
use crate::call::call;
use crate::convert::{Seconds, Text};
use crate::lease::{AioLease, Lease};

/// How to acquire.
#[pyclass(frozen)]
pub(crate) struct LockOptions(stanchion::LockOptions);

#[pymethods]
impl LockOptions {
    #[new]
    #[pyo3(signature = (*, ttl=None, renew=None, max_hold=None, wait=None, fail_fast=None, adopt_unexpiring=None, label=None))]
    fn new(
        ttl: Option<Seconds>,
        renew: Option<bool>,
        max_hold: Option<Seconds>,
        wait: Option<Seconds>,
        fail_fast: Option<bool>,
        adopt_unexpiring: Option<Seconds>,
        label: Option<Text>,
    ) -> Self {
        let mut options = stanchion::LockOptions::new();
        if let Some(ttl) = ttl {
            options = options.ttl(ttl.0);
        }
        if let Some(renew) = renew {
            options = options.renew(renew);
        }
        if let Some(max_hold) = max_hold {
            options = options.max_hold(max_hold.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(fail_fast) = fail_fast {
            options = options.fail_fast(fail_fast);
        }
        if let Some(grace) = adopt_unexpiring {
            options = options.adopt_unexpiring(grace.0);
        }
        if let Some(label) = label {
            options = options.label(label.0);
        }
        Self(options)
    }
}

/// As the arguments of the Python class.
type HolderFields = (&'static str, String, String, u32, u64, Option<f64>, Option<f64>, u64);

fn holder_fields(holder: Holder) -> HolderFields {
    let held_as = match holder.held_as {
        HeldAs::Lease => "lease",
        HeldAs::Offer => "offer",
        HeldAs::Cooldown => "cooldown",
        HeldAs::Foreign => "foreign",
        _ => "other",
    };
    let since =
        (holder.since_ms > 0).then(|| std::time::Duration::from_millis(holder.since_ms).as_secs_f64());
    let remaining = holder.remaining.map(|time| time.as_secs_f64());
    (held_as, holder.label, holder.host, holder.pid, holder.fence, since, remaining, holder.waiters)
}

/// A blocking lock.
#[pyclass(frozen)]
pub(crate) struct Lock(pub(crate) blocking::Lock);

#[pymethods]
impl Lock {
    fn acquire(&self, py: Python<'_>, options: &Bound<'_, LockOptions>) -> PyResult<Lease> {
        let options = options.get().0.clone();
        call(py, || self.0.acquire(options)).map(Lease::of)
    }

    fn try_acquire(&self, py: Python<'_>, options: &Bound<'_, LockOptions>) -> PyResult<Option<Lease>> {
        let options = options.get().0.clone();
        Ok(call(py, || self.0.try_acquire(options))?.map(Lease::of))
    }

    fn holder(&self, py: Python<'_>) -> PyResult<Option<HolderFields>> {
        Ok(call(py, || self.0.holder())?.map(holder_fields))
    }

    fn is_locked(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || self.0.is_locked())
    }

    fn break_lease(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || self.0.break_lease())
    }
}

/// A lock for asyncio.
#[pyclass(frozen)]
pub(crate) struct AioLock(pub(crate) stanchion::Lock);

#[pymethods]
impl AioLock {
    fn acquire(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        options: &Bound<'_, LockOptions>,
    ) -> PyResult<u64> {
        let (lock, options) = (self.0.clone(), options.get().0.clone());
        bridge.get().start(py, future, async move { lock.acquire(options).await }, AioLease::made)
    }

    fn try_acquire(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        options: &Bound<'_, LockOptions>,
    ) -> PyResult<u64> {
        let (lock, options) = (self.0.clone(), options.get().0.clone());
        let work = async move { lock.try_acquire(options).await };
        bridge.get().start(py, future, work, |py, lease| match lease {
            Some(lease) => AioLease::made(py, lease),
            None => Ok(py.None()),
        })
    }

    fn holder(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let lock = self.0.clone();
        let work = async move { lock.holder().await };
        bridge.get().start(py, future, work, |py, holder| {
            Ok(holder.map(holder_fields).into_pyobject(py)?.into_any().unbind())
        })
    }

    fn is_locked(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let lock = self.0.clone();
        let work = async move { lock.is_locked().await };
        bridge
            .get()
            .start(py, future, work, |py, yes| Ok(yes.into_pyobject(py)?.to_owned().into_any().unbind()))
    }

    fn break_lease(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let lock = self.0.clone();
        let work = async move { lock.break_lease().await };
        bridge
            .get()
            .start(py, future, work, |py, yes| Ok(yes.into_pyobject(py)?.to_owned().into_any().unbind()))
    }
}
