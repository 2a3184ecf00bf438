//! The handlers of a worker, at work beside each other: tasks of the runtime, or of the host's event loop that works on
//! the worker itself, so that none crosses to another thread and back.

use std::any::Any;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
#[cfg(feature = "redis")]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "redis")]
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "redis")]
use futures_util::stream::{FuturesUnordered, Stream};
use tokio::task::{Id, JoinSet};

#[cfg(feature = "redis")]
use crate::base::host_loop::HostLoop;

/// How one ended.
pub(super) enum Ended<T> {
    Returned(T),
    Panicked(Box<dyn Any + Send>),
    /// The runtime is shutting down.
    Dropped,
}

/// See the module's documentation. Dropped, it drops them all.
pub(super) struct Crew<T> {
    last: u64,
    runtime: JoinSet<T>,
    /// The numbers of those on the runtime.
    numbers: HashMap<Id, u64>,
    #[cfg(feature = "redis")]
    here: FuturesUnordered<Here<T>>,
}

#[cfg(feature = "redis")]
type Here<T> = Pin<Box<dyn Future<Output = (u64, Ended<T>)> + Send>>;

impl<T: Send + 'static> Crew<T> {
    pub(super) fn new() -> Self {
        Self {
            last: 0,
            runtime: JoinSet::new(),
            numbers: HashMap::new(),
            #[cfg(feature = "redis")]
            here: FuturesUnordered::new(),
        }
    }

    /// Has one begin; its number.
    pub(super) fn spawn(&mut self, work: impl Future<Output = T> + Send + 'static) -> u64 {
        self.last += 1;
        #[cfg(feature = "redis")]
        if HostLoop::is_in_turn() {
            self.here.push(here(self.last, work));
            return self.last;
        }
        self.numbers.insert(self.runtime.spawn(work).id(), self.last);
        self.last
    }

    /// Waits until some have ended.
    pub(super) async fn ended(&mut self) -> Vec<(u64, Ended<T>)> {
        poll_fn(|context| {
            let mut found = Vec::new();
            while let Poll::Ready(one) = self.poll(context) {
                found.push(one);
            }
            if found.is_empty() { Poll::Pending } else { Poll::Ready(found) }
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(u64, Ended<T>)> {
        #[cfg(feature = "redis")]
        if let Poll::Ready(Some(one)) = Pin::new(&mut self.here).poll_next(context) {
            return Poll::Ready(one);
        }
        let Poll::Ready(Some(joined)) = self.runtime.poll_join_next_with_id(context) else {
            return Poll::Pending;
        };
        let (id, ended) = match joined {
            Ok((id, result)) => (id, Ended::Returned(result)),
            Err(error) => (error.id(), error.try_into_panic().map_or(Ended::Dropped, Ended::Panicked)),
        };
        self.numbers.remove(&id).map_or(Poll::Pending, |number| Poll::Ready((number, ended)))
    }
}

#[cfg(feature = "redis")]
fn here<T: 'static>(number: u64, work: impl Future<Output = T> + Send + 'static) -> Here<T> {
    let mut work = Box::pin(work);
    Box::pin(poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.map_or_else(
            |panic| Poll::Ready((number, Ended::Panicked(panic))),
            |polled| polled.map(|result| (number, Ended::Returned(result))),
        )
    }))
}
