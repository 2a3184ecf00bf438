//! The computation of a cached value: what the `Ticket` types of both faces wrap.

use std::sync::Arc;
use std::time::Duration;

use crate::body::MAX_PAYLOAD;
use crate::cached_options::CachedPlan;
use crate::clock::Moment;
use crate::engine::acquire::Acquired;
use crate::engine::call::Answer;
use crate::error::{Error, ErrorKind};
use crate::held::{Computed, Held, Releasing};
use crate::name::LockName;
use crate::session::Live;
use crate::token::Token;

pub(crate) struct Computing {
    pub(crate) held: Held,
    ttl: Duration,
    stale: Duration,
    begun: Moment,
}

/// What an acquire has come to.
pub(crate) enum Outcome {
    /// The value, and when the request was sent that found it.
    Value(Vec<u8>, Moment),
    Computing(Computing),
}

impl Computing {
    pub(crate) fn begin(
        live: &Arc<Live>,
        name: &LockName,
        plan: &CachedPlan,
        token: Token,
        acquired: Acquired,
    ) -> Option<Outcome> {
        match acquired {
            Acquired::Cached { value, asked } => Some(Outcome::Value(value, asked)),
            Acquired::Granted(grant) => {
                let held = Held::granted(live, name, &plan.lock, token, &grant);
                let begun = live.clock.now();
                Some(Outcome::Computing(Self { held, ttl: plan.ttl, stale: plan.stale, begun }))
            }
            Acquired::Busy => None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.held.lock.name.as_str()
    }

    /// What the store is to be told; `None` if the lease is known to be lost.
    pub(crate) fn store(&self, value: Vec<u8>) -> Result<Option<Releasing>, Error> {
        if value.len() > MAX_PAYLOAD {
            // The next caller computes.
            self.held.let_go();
            let message = format!("a value has at most {MAX_PAYLOAD} bytes, this one {}", value.len());
            return Err(Error::invalid(message).during("cached", self.name()));
        }
        let took = self.held.kept.live.clock.now().since(self.begun);
        let computed = Computed { value: value.into(), ttl: self.ttl, stale: self.stale, took };
        match self.held.store_value(computed) {
            Ok(storing) => Ok(Some(storing)),
            Err(error) if error.is_lost() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the value was stored. What passes costs the others a computation, and this caller nothing.
pub(crate) fn stored(storing: &Releasing, answer: Result<Answer, Error>) -> Result<bool, Error> {
    match storing.judge(answer) {
        Ok(()) => Ok(true),
        Err(error) if error.is_lost() => Ok(false),
        Err(error) if matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::Indeterminate) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

impl Drop for Computing {
    /// One that was not stored is left to the next caller.
    fn drop(&mut self) {
        self.held.let_go();
    }
}
