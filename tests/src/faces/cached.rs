//! Cached values of both faces.

use stanchion::{Begun, CachedOptions, Error, LockKind, Ticket, blocking};

use super::{AnyClient, AnyLock, runtime};

/// What `begin_cached` of either face answers.
#[derive(Debug)]
#[must_use = "dropping a ticket leaves the computation to the next caller"]
pub enum AnyBegun {
    /// The value is there.
    Value(Vec<u8>),
    /// This caller computes it.
    Compute(AnyTicket),
}

/// A ticket of either face.
#[derive(Debug)]
#[must_use = "dropping a ticket leaves the computation to the next caller"]
pub enum AnyTicket {
    /// `stanchion::Ticket`.
    Async(Ticket),
    /// `stanchion::blocking::Ticket`.
    Blocking(blocking::Ticket),
}

impl AnyClient {
    /// As `Client::cached`.
    pub fn cached(
        &self,
        name: &str,
        options: impl Into<CachedOptions>,
        compute: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        match self {
            Self::Async(client) => runtime().block_on(client.cached(name, options, || async { compute() })),
            Self::Blocking(client) => client.cached(name, options, compute),
        }
    }

    /// As `Client::begin_cached`.
    pub fn begin_cached(&self, name: &str, options: impl Into<CachedOptions>) -> Result<AnyBegun, Error> {
        Ok(match self {
            Self::Async(client) => match runtime().block_on(client.begin_cached(name, options))? {
                Begun::Value(value) => AnyBegun::Value(value),
                Begun::Compute(ticket) => AnyBegun::Compute(AnyTicket::Async(ticket)),
            },
            Self::Blocking(client) => match client.begin_cached(name, options)? {
                blocking::Begun::Value(value) => AnyBegun::Value(value),
                blocking::Begun::Compute(ticket) => AnyBegun::Compute(AnyTicket::Blocking(ticket)),
            },
        })
    }

    /// As `Client::invalidate`.
    pub fn invalidate(&self, name: &str) -> Result<(), Error> {
        match self {
            Self::Async(client) => runtime().block_on(client.invalidate(name)),
            Self::Blocking(client) => client.invalidate(name),
        }
    }

    /// Whose computations are under way: all pages of `Client::locks_of`.
    pub fn computations(&self) -> Vec<String> {
        let (mut names, mut page) = (Vec::new(), None);
        loop {
            let listed = either!(Self, self, client => client.locks_of(LockKind::Cached, page));
            let listed = listed.expect("a page");
            names.extend(listed.names);
            page = listed.next;
            if page.is_none() {
                return names;
            }
        }
    }

    /// The lock of a computation, to look at it.
    pub fn computation(&self, name: &str) -> AnyLock {
        match self {
            Self::Async(client) => AnyLock::Async(client.computation(name)),
            Self::Blocking(client) => AnyLock::Blocking(client.computation(name)),
        }
    }
}

impl AnyBegun {
    /// The ticket; panics if the value is there.
    #[track_caller]
    pub fn ticket(self) -> AnyTicket {
        match self {
            Self::Compute(ticket) => ticket,
            Self::Value(value) => panic!("no ticket, but {value:?}"),
        }
    }

    /// The value; panics if it is to be computed.
    #[track_caller]
    pub fn value(self) -> Vec<u8> {
        match self {
            Self::Value(value) => value,
            Self::Compute(ticket) => panic!("no value, but {ticket:?}"),
        }
    }
}

impl AnyTicket {
    /// As `Ticket::store`.
    pub fn store(&self, value: impl Into<Vec<u8>>) -> Result<bool, Error> {
        match self {
            Self::Async(ticket) => runtime().block_on(ticket.store(value)),
            Self::Blocking(ticket) => ticket.store(value),
        }
    }

    /// As `Ticket::release`.
    pub fn release(&self) -> Result<(), Error> {
        match self {
            Self::Async(ticket) => runtime().block_on(ticket.release()),
            Self::Blocking(ticket) => ticket.release(),
        }
    }

    /// As `Ticket::is_valid`.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Async(ticket) => ticket.is_valid(),
            Self::Blocking(ticket) => ticket.is_valid(),
        }
    }
}
