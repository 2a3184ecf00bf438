//! Both faces of the library behind one. Unlike `stanchion_tests::faces`, it works in a forked child.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use stanchion::{Begun, CachedOptions, Error, Fence, Holder, LeaseHandle, LockOptions, LossReason, blocking};
use tokio::runtime::{Builder, Runtime};

/// Which face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// `stanchion::blocking`
    Blocking,
    /// `stanchion`, on the runtime of this process.
    Async,
}

/// A client of either face.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    /// `stanchion::blocking::Client`
    Blocking(blocking::Client),
    /// `stanchion::Client`
    Async(stanchion::Client),
}

/// A lease of either face.
#[derive(Debug)]
pub(crate) enum Lease {
    /// `stanchion::blocking::Lease`
    Blocking(blocking::Lease),
    /// `stanchion::Lease`
    Async(stanchion::Lease),
}

/// A ticket of either face, to have and to hold.
#[derive(Debug)]
#[allow(dead_code, reason = "it is dropped, or not")]
pub(crate) enum Ticket {
    /// `stanchion::blocking::Ticket`
    Blocking(blocking::Ticket),
    /// `stanchion::Ticket`
    Async(stanchion::Ticket),
}

/// The runtime of this process: a forked child gets one of its own, since threads are not inherited. No lock guards
/// it: a thread that held one while another forked would leave it held in the child.
pub(crate) fn runtime() -> &'static Runtime {
    static CURRENT: AtomicPtr<(u32, Runtime)> = AtomicPtr::new(ptr::null_mut());
    let process = std::process::id();
    // SAFETY: what it points to is never freed.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some((owner, runtime)) if *owner == process => runtime,
        _ => {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let ours = Box::leak(Box::new((process, runtime.expect("threads can be started"))));
            CURRENT.store(ours, Ordering::Release);
            &ours.1
        }
    }
}

impl Face {
    /// Opens a store.
    pub(crate) fn open(self, url: &str) -> Result<Client, Error> {
        match self {
            Self::Blocking => blocking::Client::open(url).map(Client::Blocking),
            Self::Async => runtime().block_on(stanchion::Client::open(url)).map(Client::Async),
        }
    }
}

impl Client {
    /// See `Lock::acquire`.
    pub(crate) fn acquire(&self, name: &str, options: LockOptions) -> Result<Lease, Error> {
        match self {
            Self::Blocking(client) => client.lock(name).acquire(options).map(Lease::Blocking),
            Self::Async(client) => runtime().block_on(client.lock(name).acquire(options)).map(Lease::Async),
        }
    }

    /// See `Client::begin_cached`.
    pub(crate) fn begin_cached(&self, name: &str, options: CachedOptions) -> Result<Ticket, Error> {
        match self {
            Self::Blocking(client) => match client.begin_cached(name, options)? {
                blocking::Begun::Compute(ticket) => Ok(Ticket::Blocking(ticket)),
                blocking::Begun::Value(value) => panic!("it is there: {value:?}"),
            },
            Self::Async(client) => match runtime().block_on(client.begin_cached(name, options))? {
                Begun::Compute(ticket) => Ok(Ticket::Async(ticket)),
                Begun::Value(value) => panic!("it is there: {value:?}"),
            },
        }
    }

    /// See `Client::cached`.
    pub(crate) fn cached(&self, name: &str, options: CachedOptions, own: &str) -> Result<Vec<u8>, Error> {
        match self {
            Self::Blocking(client) => client.cached(name, options, || Ok(own)),
            Self::Async(client) => runtime().block_on(client.cached(name, options, || async { Ok(own) })),
        }
    }

    /// See `Lock::holder`.
    pub(crate) fn holder(&self, name: &str) -> Result<Option<Holder>, Error> {
        match self {
            Self::Blocking(client) => client.lock(name).holder(),
            Self::Async(client) => runtime().block_on(client.lock(name).holder()),
        }
    }

    /// See `Client::release_all`.
    pub(crate) fn release_all(&self) -> Result<usize, Error> {
        match self {
            Self::Blocking(client) => client.release_all(),
            Self::Async(client) => runtime().block_on(client.release_all()),
        }
    }
}

impl Lease {
    /// See `Lease::release`.
    pub(crate) fn release(self) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.release(),
            Self::Async(lease) => runtime().block_on(lease.release()),
        }
    }

    /// See `Lease::extend`.
    pub(crate) fn extend(&self, ttl: Duration) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.extend(ttl),
            Self::Async(lease) => runtime().block_on(lease.extend(ttl)),
        }
    }

    /// See `Lease::detach`.
    pub(crate) fn detach(&self, ttl: Duration) -> Result<LeaseHandle, Error> {
        match self {
            Self::Blocking(lease) => lease.detach(ttl),
            Self::Async(lease) => runtime().block_on(lease.detach(ttl)),
        }
    }

    /// Waits for the loss; false if it did not come in time.
    pub(crate) fn wait_lost(&self, time: Duration) -> bool {
        match self {
            Self::Blocking(lease) => lease.wait_lost(time),
            Self::Async(lease) => {
                runtime().block_on(async { tokio::time::timeout(time, lease.lost()).await.is_ok() })
            }
        }
    }

    /// See `Lease::is_valid`.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Blocking(lease) => lease.is_valid(),
            Self::Async(lease) => lease.is_valid(),
        }
    }

    /// See `Lease::loss`.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        match self {
            Self::Blocking(lease) => lease.loss(),
            Self::Async(lease) => lease.loss(),
        }
    }

    /// See `Lease::remaining`.
    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Self::Blocking(lease) => lease.remaining(),
            Self::Async(lease) => lease.remaining(),
        }
    }

    /// See `Lease::fence`.
    pub(crate) fn fence(&self) -> Fence {
        match self {
            Self::Blocking(lease) => lease.fence(),
            Self::Async(lease) => lease.fence(),
        }
    }
}
