//! What only the async face has.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use super::face::example;
use super::nouns::client::connect;
use super::{Begun, Claim, Client, Lease, Lock, Queue};
use crate::base::error::Error;
use crate::cached::cached_options::CachedOptions;
use crate::engine::loss::LossReason;
use crate::protocol;
use crate::queue::claim_calls::{Verdict, batches};
use crate::session::builder::ClientBuilder;
use crate::session::options::LockOptions;

impl ClientBuilder {
    /// Opens the store for async use: connects once and checks the server's version.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub async fn open(self) -> Result<Client, Error> {
        connect(self).await
    }
}

impl Client {
    #[doc = include_str!("../nouns/cached.md")]
    #[doc = example!("cached")]
    pub async fn cached<F, Fut, V, E>(
        &self,
        name: &str,
        options: impl Into<CachedOptions>,
        compute: F,
    ) -> Result<Vec<u8>, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V, E>>,
        V: Into<Vec<u8>>,
        E: From<Error>,
    {
        let ticket = match self.begin_cached(name, options).await? {
            Begun::Value(value) => return Ok(value),
            Begun::Compute(ticket) => ticket,
        };
        let value: Vec<u8> = compute().await?.into();
        ticket.store(value.clone()).await?;
        Ok(value)
    }
}

impl Lock {
    /// Acquires, runs `body`, and releases. When the lease is lost, `body` is dropped at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), stanchion::Error> {
    /// # use stanchion::{Client, Fence, LockOptions};
    /// # let client = Client::open("memory:").await?;
    /// let fence = client.lock("report").hold(LockOptions::new(), |lease| async move { lease.fence() }).await?;
    /// assert!(fence > Fence::NONE);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Lock::acquire`], and `LeaseLost` or `LeaseExpired` if the lease ended before `body` did; the
    /// value of `body` is dropped then.
    pub async fn hold<F, Fut, T>(&self, options: LockOptions, body: F) -> Result<T, Error>
    where
        F: FnOnce(Arc<Lease>) -> Fut,
        Fut: Future<Output = T>,
    {
        let lease = Arc::new(self.acquire(options).await?);
        let guard = LetGo(&lease);
        let value = tokio::select! {
            biased;
            value = body(Arc::clone(&lease)) => value,
            () = lease.lost() => return Err(lease.loss_error("hold")),
        };
        guard.0.release().await?;
        Ok(value)
    }
}

/// Releases even when the body kept a clone of the lease, or was dropped.
struct LetGo<'a>(&'a Lease);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl Lease {
    /// Completes when the lease is lost or released: at the latest at its deadline.
    pub async fn lost(&self) {
        let held = self.grip.all().filter(|held| held.kept.can_be_lost());
        let mut losses: Vec<_> =
            held.map(|held| Box::pin(held.kept.cell.lost(&held.kept.live.clock))).collect();
        if !losses.is_empty() {
            poll_fn(|context| match losses.iter_mut().any(|lost| lost.as_mut().poll(context).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }

    fn loss_error(&self, operation: &'static str) -> Error {
        let lost = self.grip.check(operation).err();
        lost.unwrap_or_else(|| LossReason::Expired.error().during(operation, self.name()))
    }
}

impl Claim {
    /// Completes when the claim is lost or settled: at the latest at its deadline.
    pub async fn lost(&self) {
        if self.delivery().kept.can_be_lost() {
            self.delivery().kept.cell.lost(&self.delivery().kept.live.clock).await;
        }
    }

    /// As [`Claim::put_back`] without a delay, in the background, for a claim that its caller never got;
    /// [`Client::linger`] waits for it.
    #[doc(hidden)]
    pub fn put_back_unheard(&self) {
        self.delivery().settle_unheard(protocol::Verdict::PUT_BACK);
    }
}

impl Queue {
    /// Settles these in the background, for a caller that cannot wait.
    pub(crate) fn settle_later(&self, verdicts: Vec<Verdict>) {
        for batch in batches(&self.calls, verdicts).unwrap_or_default() {
            if let Some(settle) = batch.request() {
                self.repeat_later(settle);
            }
        }
    }

    /// The same, for settlements that may have been sent before.
    pub(crate) fn repeat_later(&self, settle: protocol::Settle) {
        if let (Ok(live), Ok(queue)) = (self.calls.session.live(), self.calls.checked()) {
            let verb = protocol::QueueVerb::Settle(settle);
            live.keeper.clean_up(protocol::Request::Queue(protocol::QueueRequest { queue, verb }));
        }
    }
}
