//! Clients.

use pyo3::prelude::*;
use stanchion::{ClientBuilder, ManualClock, blocking};

use crate::bridge::Bridge;
use crate::call::call;
use crate::convert::{Seconds, Text, Whole};
use crate::error::raise;
use crate::lease::{AioLease, Lease};
use crate::lock::{AioLock, Lock};
use crate::queue::{AioQueue, AioQueues, Queue, Queues};

/// A clock that a test moves.
#[pyclass(frozen)]
pub(crate) struct Clock(ManualClock);

#[pymethods]
impl Clock {
    #[new]
    fn new() -> Self {
        Self(ManualClock::new())
    }

    fn advance(&self, seconds: Seconds) {
        self.0.advance(seconds.0);
    }
}

/// How to open a store.
#[pyclass(frozen)]
pub(crate) struct Settings(ClientBuilder);

#[pymethods]
impl Settings {
    #[new]
    #[pyo3(signature = (url, lock_prefix, queue_prefix, timeout, foreign_share, label, tls_ca, tls_cert, tls_key, clock))]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        url: Option<Text>,
        lock_prefix: Option<Text>,
        queue_prefix: Option<Text>,
        timeout: Option<Seconds>,
        foreign_share: Option<bool>,
        label: Option<Text>,
        tls_ca: Option<std::path::PathBuf>,
        tls_cert: Option<std::path::PathBuf>,
        tls_key: Option<std::path::PathBuf>,
        clock: Option<Bound<'_, Clock>>,
    ) -> PyResult<Self> {
        let mut builder = match url {
            Some(url) => blocking::Client::builder(&url.0),
            None => blocking::Client::from_env(),
        };
        if let Some(prefix) = lock_prefix {
            builder = builder.lock_prefix(prefix.0);
        }
        if let Some(prefix) = queue_prefix {
            builder = builder.queue_prefix(prefix.0);
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout.0);
        }
        if let Some(share) = foreign_share {
            builder = builder.foreign_share(share);
        }
        if let Some(label) = label {
            builder = builder.label(label.0);
        }
        if let Some(file) = tls_ca {
            builder = builder.tls_ca(file);
        }
        match (tls_cert, tls_key) {
            (Some(cert), Some(key)) => builder = builder.tls_client(cert, key),
            (None, None) => {}
            _ => return Err(crate::error::invalid(py, "tls_cert and tls_key belong together")),
        }
        if let Some(clock) = clock {
            builder = builder.clock(&clock.get().0);
        }
        Ok(Self(builder))
    }
}

#[pyfunction]
pub(crate) fn connect(py: Python<'_>, settings: &Bound<'_, Settings>) -> PyResult<Client> {
    let builder = settings.get().0.clone();
    call(py, move || builder.open_blocking()).map(Client)
}

#[pyfunction]
pub(crate) fn connect_aio(
    py: Python<'_>,
    bridge: &Bound<'_, Bridge>,
    future: Py<PyAny>,
    settings: &Bound<'_, Settings>,
) -> PyResult<u64> {
    let builder = settings.get().0.clone();
    bridge.get().start(
        py,
        future,
        builder.open(),
        |py, client| Ok(Py::new(py, AioClient(client))?.into_any()),
    )
}

/// A blocking client.
#[pyclass(frozen)]
pub(crate) struct Client(blocking::Client);

#[pymethods]
impl Client {
    fn lock(&self, name: Text) -> Lock {
        Lock(self.0.lock(&name.0))
    }

    fn queue(&self, name: Text) -> Queue {
        Queue(self.0.queue(&name.0))
    }

    fn queues(&self, names: Vec<Text>) -> Queues {
        let names: Vec<&str> = names.iter().map(|name| &*name.0).collect();
        Queues(self.0.queues(&names))
    }

    fn resume_lease(&self, py: Python<'_>, handle: Text) -> PyResult<Lease> {
        let lease = call(py, || self.0.resume_lease(&handle.0.parse()?))?;
        Ok(Lease::of(lease))
    }

    fn release_all(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.0.release_all())
    }

    fn locks(&self, py: Python<'_>, page: Option<Whole>) -> PyResult<(Vec<String>, Option<u64>)> {
        let page = call(py, || self.0.locks(page.map(|page| page.0)))?;
        Ok((page.names, page.next))
    }

    fn queue_names(&self, py: Python<'_>, page: Option<Whole>) -> PyResult<(Vec<String>, Option<u64>)> {
        let page = call(py, || self.0.queue_names(page.map(|page| page.0)))?;
        Ok((page.names, page.next))
    }
}

/// A client for asyncio.
#[pyclass(frozen)]
pub(crate) struct AioClient(stanchion::Client);

#[pymethods]
impl AioClient {
    fn lock(&self, name: Text) -> AioLock {
        AioLock(self.0.lock(&name.0))
    }

    fn queue(&self, name: Text) -> AioQueue {
        AioQueue(self.0.queue(&name.0))
    }

    fn queues(&self, names: Vec<Text>) -> AioQueues {
        let names: Vec<&str> = names.iter().map(|name| &*name.0).collect();
        AioQueues(self.0.queues(&names))
    }

    fn resume_lease(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        handle: Text,
    ) -> PyResult<u64> {
        let client = self.0.clone();
        let handle = handle.0.parse().map_err(|error| raise(py, &error))?;
        let work = async move { client.resume_lease(&handle).await };
        bridge.get().start(py, future, work, AioLease::made)
    }

    fn release_all(&self, py: Python<'_>, bridge: &Bound<'_, Bridge>, future: Py<PyAny>) -> PyResult<u64> {
        let client = self.0.clone();
        let work = async move { client.release_all().await };
        bridge.get().start(py, future, work, |py, count| Ok(count.into_pyobject(py)?.into_any().unbind()))
    }

    fn locks(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        page: Option<Whole>,
    ) -> PyResult<u64> {
        let client = self.0.clone();
        let work = async move { client.locks(page.map(|page| page.0)).await };
        bridge.get().start(py, future, work, |py, page| {
            Ok((page.names, page.next).into_pyobject(py)?.into_any().unbind())
        })
    }

    fn queue_names(
        &self,
        py: Python<'_>,
        bridge: &Bound<'_, Bridge>,
        future: Py<PyAny>,
        page: Option<Whole>,
    ) -> PyResult<u64> {
        let client = self.0.clone();
        let work = async move { client.queue_names(page.map(|page| page.0)).await };
        bridge.get().start(py, future, work, |py, page| {
            Ok((page.names, page.next).into_pyobject(py)?.into_any().unbind())
        })
    }
}
