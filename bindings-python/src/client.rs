//! Clients.

use pyo3::prelude::*;
use stanchion::{ClientBuilder, ManualClock, blocking};

use crate::args::{File, Flag, Handle, Seconds, Text, Whole};
use crate::bridge::Bridge;
use crate::cached::CachedOptions;
use crate::call::call;
use crate::error::raise;
use crate::faces::faces;
use crate::limiter::{AioLimiter, Limiter, limit};
use crate::lock::{AioLock, Lock};
use crate::queue::{AioQueue, AioQueues, Queue, Queues};
use crate::results::{IntoPython, object};
use crate::runtime::runtime;

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
        foreign_share: Option<Flag>,
        label: Option<Text>,
        tls_ca: Option<File>,
        tls_cert: Option<File>,
        tls_key: Option<File>,
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
            builder = builder.foreign_share(share.0);
        }
        if let Some(label) = label {
            builder = builder.label(label.0);
        }
        if let Some(file) = tls_ca {
            builder = builder.tls_ca(file.0);
        }
        match (tls_cert, tls_key) {
            (Some(cert), Some(key)) => builder = builder.tls_client(cert.0, key.0),
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
pub(crate) fn connect(py: Python<'_>, settings: &Bound<'_, Settings>) -> PyResult<Py<PyAny>> {
    let builder = settings.get().0.clone();
    call(py, move || builder.open_blocking())?.into_python(py)
}

#[pyfunction]
pub(crate) fn connect_aio(
    bridge: &Bound<'_, Bridge>,
    future: Py<PyAny>,
    settings: &Bound<'_, Settings>,
) -> PyResult<u64> {
    bridge.get().start(future, settings.get().0.clone().open())
}

faces! {
    /// A client.
    Client(blocking::Client), AioClient(stanchion::Client);

    both {
        /// Samples with their values.
        fn metrics(&self, py: Python<'_>) -> PyResult<Vec<(String, f64)>> {
            let metrics = self.0.metrics().map_err(|error| raise(py, &error))?;
            Ok(metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }

        fn metrics_text(&self, py: Python<'_>) -> PyResult<String> {
            self.0.metrics_text().map_err(|error| raise(py, &error))
        }
    }

    verbs {
        fn resume_lease(handle: Handle) |client| client.resume_lease(&handle.0);
        fn release_all() |client| client.release_all();
        fn close() |client| client.close();
        fn begin_cached(name: Text, options: CachedOptions) |client| client.begin_cached(&name.0, options.0);
        fn invalidate(name: Text) |client| client.invalidate(&name.0);
        fn locks(page: Option<Whole>) |client| client.locks(page.map(|page| page.0));
        fn queue_names(page: Option<Whole>) |client| client.queue_names(page.map(|page| page.0));
    }

    blocking {
        /// Waits for what is done in the background; for the end of the program.
        fn linger(&self, py: Python<'_>, time: Seconds) -> bool {
            py.detach(|| self.0.linger(time.0))
        }

        fn lock(&self, name: Text) -> Lock {
            Lock(self.0.lock(&name.0))
        }

        fn reader(&self, name: Text) -> Lock {
            Lock(self.0.rw_lock(&name.0).read().clone())
        }

        fn writer(&self, name: Text) -> Lock {
            Lock(self.0.rw_lock(&name.0).write().clone())
        }

        fn semaphore(&self, name: Text, permits: Whole) -> Lock {
            Lock(self.0.semaphore(&name.0, permits.narrow(u32::MAX)))
        }

        fn multi_lock(&self, names: Vec<Text>) -> Lock {
            Lock(self.0.multi_lock(&texts(&names)))
        }

        fn limiter(
            &self,
            py: Python<'_>,
            name: Text,
            kind: Text,
            n: Whole,
            per: Seconds,
            burst: Option<Whole>,
        ) -> PyResult<Limiter> {
            let limit = limit(py, &kind, n, per, burst)?;
            self.0.limiter(&name.0, limit).map(Limiter).map_err(|error| raise(py, &error))
        }

        fn queue(&self, name: Text) -> Queue {
            Queue(self.0.queue(&name.0))
        }

        fn queues(&self, names: Vec<Text>) -> Queues {
            Queues(self.0.queues(&texts(&names)))
        }
    }

    aio {
        /// Waits for what is done in the background; for the end of the program, when no loop runs any more.
        fn linger(&self, py: Python<'_>, time: Seconds) -> PyResult<bool> {
            let (client, runtime) = (self.0.clone(), runtime()?);
            Ok(py.detach(|| runtime.block_on(client.linger(time.0))))
        }

        fn lock(&self, name: Text) -> AioLock {
            AioLock(self.0.lock(&name.0))
        }

        fn reader(&self, name: Text) -> AioLock {
            AioLock(self.0.rw_lock(&name.0).read().clone())
        }

        fn writer(&self, name: Text) -> AioLock {
            AioLock(self.0.rw_lock(&name.0).write().clone())
        }

        fn semaphore(&self, name: Text, permits: Whole) -> AioLock {
            AioLock(self.0.semaphore(&name.0, permits.narrow(u32::MAX)))
        }

        fn multi_lock(&self, names: Vec<Text>) -> AioLock {
            AioLock(self.0.multi_lock(&texts(&names)))
        }

        fn limiter(
            &self,
            py: Python<'_>,
            name: Text,
            kind: Text,
            n: Whole,
            per: Seconds,
            burst: Option<Whole>,
        ) -> PyResult<AioLimiter> {
            let limit = limit(py, &kind, n, per, burst)?;
            self.0.limiter(&name.0, limit).map(AioLimiter).map_err(|error| raise(py, &error))
        }

        fn queue(&self, name: Text) -> AioQueue {
            AioQueue(self.0.queue(&name.0))
        }

        fn queues(&self, names: Vec<Text>) -> AioQueues {
            AioQueues(self.0.queues(&texts(&names)))
        }
    }
}

fn texts(names: &[Text]) -> Vec<&str> {
    names.iter().map(|name| &*name.0).collect()
}

impl IntoPython for blocking::Client {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, Client(self))
    }
}

impl IntoPython for stanchion::Client {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, AioClient(self))
    }
}
