//! The lease.

use std::fmt;
use std::time::Duration;

use super::face::{both, drive, drive_all};
use crate::base::error::Error;
use crate::base::token::Token;
use crate::engine::loss::LossReason;
use crate::lease::lease_handle::LeaseHandle;
use crate::lease::lease_set::LeaseSet;
use crate::protocol::Fence;
use crate::session::options::Extent;

/// A lock that is ours until it is released, expires, or is lost.
///
/// Dropping a lease releases it in the background, as far as the store can be reached. To be sure, and to
/// learn whether it was ours to the end, call [`Lease::release`].
#[must_use = "dropping a lease releases the lock"]
pub struct Lease {
    pub(crate) grip: LeaseSet,
}

#[both]
impl Lease {
    pub(crate) fn new(grip: LeaseSet) -> Self {
        Self { grip }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.grip.name()
    }

    /// The number of this grant: larger than that of every earlier grant of the lock. Pass it along with
    /// writes ([`Fence::get`] is the number), so that the resource can refuse a holder that came too late.
    pub fn fence(&self) -> Fence {
        self.grip.fence()
    }

    /// The fence of each lock: of [`Client::multi_lock`](super::Client::multi_lock) there are several, in the order of
    /// their names.
    pub fn fences(&self) -> Vec<(String, Fence)> {
        self.grip.fences()
    }

    /// The secret that proves the lease is ours.
    pub fn token(&self) -> &Token {
        &self.grip.first().lock.token
    }

    /// How long the lease is surely ours from now on, without further renewal; zero if it is not.
    pub fn remaining(&self) -> Duration {
        self.grip.remaining()
    }

    /// Whether the lease is ours now. Computed from the clock at the time of the call.
    pub fn is_valid(&self) -> bool {
        self.grip.is_valid()
    }

    /// Fails if the lease is known to be gone, without asking the store.
    ///
    /// # Errors
    /// As [`Lease::extend`] for a lease that has ended.
    pub fn check(&self) -> Result<(), Error> {
        self.grip.check("check")
    }

    /// Why the lease was lost, if it was.
    pub fn loss(&self) -> Option<LossReason> {
        self.grip.loss()
    }

    /// Prolongs the lease to at least `ttl` from now; never shortens it.
    ///
    /// # Errors
    /// `LeaseLost` or `LeaseExpired` if it has ended; `StoreUnavailable` or `Indeterminate` if the store did
    /// not answer, and then the lease goes on to its old deadline.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.extend_by(Extent::AtLeast(ttl)).await
    }

    /// Has the lease end `ttl` from now (1 ms to 365 days), also earlier than it would, as lockers do that set an
    /// expiry. It is not renewed any more.
    ///
    /// # Errors
    /// As [`Lease::extend`]; but if the store did not answer, the lease goes on to the earlier of both ends.
    /// `LeaseExpired` also if it was over before the answer came: its validity is up to 2 ms and 1 % shorter.
    pub async fn extend_exact(&self, ttl: Duration) -> Result<(), Error> {
        self.extend_by(Extent::Exactly(ttl)).await
    }

    async fn extend_by(&self, extent: Extent) -> Result<(), Error> {
        let mut machines = self.grip.extend(extent)?;
        let answers = drive_all(self.grip.live(), machines.iter_mut()).await;
        self.grip.extended(extent, answers)
    }

    /// Turns the lease of a writer into that of a reader, with the same fence: other readers may come in. A reader's
    /// lease stays as it is.
    ///
    /// # Errors
    /// `InvalidArgument` for a lease of another kind of lock; `LeaseLost` or `LeaseExpired` if it has ended;
    /// `StoreUnavailable` or `Indeterminate` if the store did not answer.
    pub async fn downgrade(&self) -> Result<(), Error> {
        self.grip.check("downgrade")?;
        let held = self.grip.only("downgrade")?;
        let mut machine = held.downgrade()?;
        let answer = drive(&held.kept.live, &mut machine, None, None).await?;
        held.downgraded(&answer)
    }

    /// Turns the lease of a reader into that of a writer if nobody else holds the lock: whether it is a writer's now.
    /// It never waits: two readers that both wait to become the writer would wait for each other for ever. The lease
    /// gets a new fence, above those of the readers before; its end stays. A writer's stays as it is.
    ///
    /// # Errors
    /// As [`Lease::downgrade`]. If the store did not answer it may be a writer's there until it is released.
    /// `Indeterminate` also if the lease was downgraded after such an upgrade: that might arrive late, and let readers in.
    pub async fn upgrade(&self) -> Result<bool, Error> {
        self.grip.check("upgrade")?;
        let held = self.grip.only("upgrade")?;
        let mut machine = held.upgrade()?;
        held.upgraded(drive(&held.kept.live, &mut machine, None, None).await)
    }

    /// Gives the lock back and hands it to the next waiter. Released again, it is an error.
    ///
    /// # Errors
    /// `LeaseExpired` if it had run out, `LeaseLost` if another got it meanwhile, `Indeterminate` if that
    /// cannot be known. The lease is over in any case.
    pub async fn release(&self) -> Result<(), Error> {
        self.release_after(None).await
    }

    /// Gives the lock back, but keeps it closed for `cooldown` (50 ms to 365 days) before anybody can get it.
    ///
    /// # Errors
    /// As [`Lease::release`]; after an error there is no cooldown. `InvalidArgument` for a bad one: the lease goes on.
    pub async fn release_with_cooldown(&self, cooldown: Duration) -> Result<(), Error> {
        self.release_after(Some(cooldown)).await
    }

    async fn release_after(&self, cooldown: Option<Duration>) -> Result<(), Error> {
        let mut releases = self.grip.release(cooldown)?;
        let answers = drive_all(self.grip.live(), releases.machines()).await;
        releases.judge(answers)
    }

    /// Prolongs the lease to `ttl`, stops renewing it, and returns a form of it that another process can
    /// [resume](super::Client::resume_lease) within that time. Here the lease is over then.
    ///
    /// # Errors
    /// As [`Lease::extend`]; the lease goes on as it was.
    pub async fn detach(&self, ttl: Duration) -> Result<LeaseHandle, Error> {
        self.grip.only("detach")?;
        self.extend(ttl).await?;
        Ok(self.grip.detach())
    }

    /// As dropping it, for a lease that several hold a reference to: released in the background, as far as the
    /// store can be reached. Never waits.
    #[doc(hidden)]
    pub fn let_go(&self) {
        self.grip.let_go();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.grip.let_go();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?}, fence {}, {:?} left)", self.name(), self.fence(), self.remaining())
    }
}
