//! Locks.

use pyo3::prelude::*;
use stanchion::blocking;

use crate::args::{Flag, Seconds, Text, Whole};
use crate::faces::faces;

/// How to acquire.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct LockOptions(stanchion::LockOptions);

#[pymethods]
impl LockOptions {
    #[new]
    #[pyo3(signature = (*, ttl=None, renew=None, max_hold=None, wait=None, fail_fast=None, adopt_unexpiring=None, label=None, weight=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        ttl: Option<Seconds>,
        renew: Option<Flag>,
        max_hold: Option<Seconds>,
        wait: Option<Seconds>,
        fail_fast: Option<Flag>,
        adopt_unexpiring: Option<Seconds>,
        label: Option<Text>,
        weight: Option<Whole>,
    ) -> Self {
        let mut options = stanchion::LockOptions::new();
        if let Some(ttl) = ttl {
            options = options.ttl(ttl.0);
        }
        if let Some(renew) = renew {
            options = options.renew(renew.0);
        }
        if let Some(max_hold) = max_hold {
            options = options.max_hold(max_hold.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(fail_fast) = fail_fast {
            options = options.fail_fast(fail_fast.0);
        }
        if let Some(grace) = adopt_unexpiring {
            options = options.adopt_unexpiring(grace.0);
        }
        if let Some(label) = label {
            options = options.label(label.0);
        }
        if let Some(weight) = weight {
            options = options.weight(weight.narrow(u32::MAX));
        }
        Self(options)
    }
}

faces! {
    /// A lock.
    Lock(blocking::Lock), AioLock(stanchion::Lock);

    both {
        #[getter]
        fn name(&self) -> &str {
            self.0.name()
        }
    }

    verbs {
        fn acquire(options: LockOptions) |lock| lock.acquire(options.0);
        fn try_acquire(options: LockOptions) |lock| lock.try_acquire(options.0);
        fn holder() |lock| lock.holder();
        fn holders() |lock| lock.holders();
        fn waiters() |lock| lock.waiters();
        fn is_locked() |lock| lock.is_locked();
        fn break_lease() |lock| lock.break_lease();
    }

    blocking {
        fn reentrant(&self, owner: Text) -> Self {
            Self(self.0.reentrant(&owner.0))
        }
    }

    aio {
        fn reentrant(&self, owner: Text) -> Self {
            Self(self.0.reentrant(&owner.0))
        }
    }
}
