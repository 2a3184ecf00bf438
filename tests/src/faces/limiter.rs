//! Limiters of both faces.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use stanchion::{Error, Limit, Limiter, Taken, blocking};
use tokio::sync::oneshot;

use super::{AnyClient, runtime};

/// A limiter of either face.
#[derive(Clone, Debug)]
pub enum AnyLimiter {
    /// `stanchion::Limiter`.
    Async(Limiter),
    /// `stanchion::blocking::Limiter`.
    Blocking(blocking::Limiter),
}

impl AnyClient {
    /// As `Client::limiter`.
    pub fn limiter(&self, name: &str, limit: Limit) -> Result<AnyLimiter, Error> {
        Ok(match self {
            Self::Async(client) => AnyLimiter::Async(client.limiter(name, limit)?),
            Self::Blocking(client) => AnyLimiter::Blocking(client.limiter(name, limit)?),
        })
    }
}

impl AnyLimiter {
    /// As `Limiter::name`.
    pub fn name(&self) -> &str {
        plain!(Self, self, limiter => limiter.name())
    }

    /// As `Limiter::limit`.
    pub fn limit(&self) -> Limit {
        plain!(Self, self, limiter => limiter.limit())
    }

    /// As `Limiter::try_take`.
    pub fn try_take(&self, n: u32) -> Result<Taken, Error> {
        either!(Self, self, limiter => limiter.try_take(n))
    }

    /// As `Limiter::take`.
    pub fn take(&self, n: u32, wait: Duration) -> Result<Taken, Error> {
        either!(Self, self, limiter => limiter.take(n, wait))
    }

    /// As `Limiter::take_while` of the blocking face; the async one is dropped as soon as `interrupt` says so.
    pub fn take_while(
        &self,
        n: u32,
        wait: Duration,
        mut interrupt: impl FnMut() -> ControlFlow<()> + Send,
    ) -> Option<Result<Taken, Error>> {
        match self {
            Self::Blocking(limiter) => Some(limiter.take_while(n, wait, &mut interrupt)),
            Self::Async(limiter) => thread::scope(|scope| {
                let (interrupted, is_interrupted) = oneshot::channel();
                // On a thread of its own: it may make calls of the async face.
                scope.spawn(move || {
                    while interrupt().is_continue() && !interrupted.is_closed() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    let _ = interrupted.send(());
                });
                runtime().block_on(async {
                    tokio::select! {
                        biased;
                        taken = limiter.take(n, wait) => Some(taken),
                        _ = is_interrupted => None,
                    }
                })
            }),
        }
    }
}
