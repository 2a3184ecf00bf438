//! The computation of a cached value: what the `Ticket` types of both faces wrap.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::envelope::MAX_PAYLOAD;
use crate::base::error::{Error, ErrorKind};
use crate::base::token::Token;
use crate::cached::cached_options::CachedPlan;
use crate::engine::acquire::Acquired;
use crate::engine::call::Answer;
use crate::lease::held_lock::{Computed, HeldLock, Releasing};
use crate::session::Live;

/// Fails if the store need not be asked now, since it did not answer a moment ago.
pub(crate) fn check_circuit(live: &Live, plan: &CachedPlan) -> Result<(), Error> {
    if plan.lock.can_do_without && live.circuit.is_open(live.clock.now()) {
        return Err(Error::new(
            ErrorKind::StoreUnavailable,
            "the store did not answer a recent request and is not asked yet; check that it runs",
        ));
    }
    Ok(())
}

/// For a call that has failed: computes without the store, if the store was the cause and the plan allows it.
pub(crate) fn instead(live: &Live, plan: &CachedPlan, error: Error) -> Result<Computing, Error> {
    if error.kind() != ErrorKind::StoreUnavailable || !plan.lock.can_do_without {
        return Err(error);
    }
    live.circuit.open(live.clock.now());
    Ok(Computing::alone(plan.lock.name.as_str()))
}

pub(crate) struct Computing {
    name: Box<str>,
    /// `None` without a store: then nothing is held, and nothing will be stored.
    held: Option<HeldLock>,
    ttl: Duration,
    stale: Duration,
    begun: Moment,
}

/// The result of an acquire.
pub(crate) enum Lookup {
    /// The value, and when the request was sent that found it.
    Value(Vec<u8>, Moment),
    Computing(Computing),
}

impl Computing {
    pub(crate) fn begin(
        live: &Arc<Live>,
        plan: &CachedPlan,
        token: Token,
        acquired: Acquired,
    ) -> Option<Lookup> {
        match acquired {
            Acquired::Cached { value, asked } => Some(Lookup::Value(value, asked)),
            Acquired::Granted(grant) => {
                let CachedPlan { lock, ttl, stale } = plan;
                let held = Some(HeldLock::granted(live, lock, token, &grant));
                let (name, begun) = (lock.name.as_str().into(), live.clock.now());
                Some(Lookup::Computing(Self { name, held, ttl: *ttl, stale: *stale, begun }))
            }
            Acquired::Busy => None,
        }
    }

    /// For a caller that computes without the store.
    pub(crate) fn alone(name: &str) -> Self {
        let (ttl, stale, begun) = (Duration::ZERO, Duration::ZERO, Moment::FAR);
        Self { name: name.into(), held: None, ttl, stale, begun }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.kept.is_valid())
    }

    /// Ends it without a value: the next caller computes.
    pub(crate) fn let_go(&self) {
        self.held.iter().for_each(HeldLock::let_go);
    }

    /// The release of the lease; `None` if there is none.
    pub(crate) fn release(&self) -> Result<Option<(Arc<Live>, Releasing)>, Error> {
        let Some(held) = &self.held else { return Ok(None) };
        Ok(Some((Arc::clone(&held.kept.live), held.release(None)?)))
    }

    /// The request that stores the value; `None` if there is no lease, or it is known to be lost.
    pub(crate) fn store(&self, value: Vec<u8>) -> Result<Option<(Arc<Live>, Releasing)>, Error> {
        if value.len() > MAX_PAYLOAD {
            self.let_go();
            let message = format!("a value has at most {MAX_PAYLOAD} bytes, this one {}", value.len());
            return Err(Error::invalid(message).during("cached", self.name()));
        }
        let Some(held) = &self.held else { return Ok(None) };
        let live = &held.kept.live;
        let took = live.clock.now().since(self.begun);
        let computed = Computed { value: value.into(), ttl: self.ttl, stale: self.stale, took };
        match held.store_value(computed) {
            Ok(storing) => Ok(Some((Arc::clone(live), storing))),
            Err(error) if error.is_lost() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether the value was stored. A failure that will pass is no error: the caller has its value, and the next
/// one computes again.
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
    /// If nothing was stored, the next caller computes.
    fn drop(&mut self) {
        self.let_go();
    }
}
