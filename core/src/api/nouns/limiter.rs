//! The limiter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::face::{Turn, both, drive, either, example};
use crate::api::timing::TakeTiming;
use crate::base::error::Error;
use crate::limiter::limit::Limit;
use crate::limiter::taking::{TakeCalls, Taken};

/// So many in so long, for all who use a limiter of this name. Made by [`Client::limiter`]; cheap to clone.
///
/// The store's clock decides. A request whose answer is lost is sent again, and may then have taken twice: there is never
/// more than the limit, but there may be less.
#[derive(Clone)]
pub struct Limiter {
    calls: TakeCalls,
}

#[both]
impl Client {
    /// The limiter with this name, of this limit. It belongs to the name and the kind of the limit: two kinds of one name
    /// know nothing of each other. No I/O.
    #[doc = example!("limiter")]
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name or limit.
    pub fn limiter(&self, name: &str, limit: Limit) -> Result<Limiter, Error> {
        Ok(Limiter { calls: TakeCalls::new(Arc::clone(&self.session), name, limit)? })
    }
}

#[both]
impl Limiter {
    /// The name.
    pub fn name(&self) -> &str {
        self.calls.name()
    }

    /// What it allows.
    pub fn limit(&self) -> Limit {
        self.calls.limit()
    }

    /// Takes `n` if they are allowed now; otherwise nothing, and says when they would be, to the microsecond.
    ///
    /// # Errors
    /// `InvalidArgument` if `n` is 0 or more than can ever be allowed at once: the burst, or the limit of a window.
    /// `StoreUnavailable`, `Indeterminate` (it may or may not have been taken), `Denied` or `WrongType` from the store;
    /// `Unsupported` on a quorum.
    pub async fn try_take(&self, n: u32) -> Result<Taken, Error> {
        self.taken(n, Duration::ZERO, None).await
    }

    /// Takes `n`, waiting for its turn: up to `wait`, 1 h at most. Who waits is in line in the order of arrival, and begins
    /// when its turn has come by the store's clock, without asking again. If the turn would come later than `wait`, it is
    /// refused at once, with the time after which a try would succeed: waiting would be of no use.
    ///
    #[doc = either!("A future that is dropped", "A wait that the host interrupts")]
    /// gives its turn back, unless somebody is in line behind it already: then it stays unused, as that of a process that
    /// dies. All of it may take the client's timeout longer than `wait`, while the store does not answer.
    ///
    /// # Errors
    /// As [`Limiter::try_take`]; `InvalidArgument` also if `wait` is over 1 h.
    pub async fn take(&self, n: u32, wait: Duration) -> Result<Taken, Error> {
        self.taken(n, wait, None).await
    }

    pub(crate) async fn taken(&self, n: u32, wait: Duration, turn: Turn<'_>) -> Result<Taken, Error> {
        let (live, mut machine) = self.calls.take(n, wait)?;
        let timing = TakeTiming::begin(live);
        let end = drive(live, &mut machine, None, turn).await;
        timing.end(&end);
        end.map(Taken::from)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limiter({:?})", self.name())
    }
}
