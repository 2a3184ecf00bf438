//! Options of locks and clients. Every default is a named constant with its reason.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, not_between};
use crate::base::name::{LockKind, LockName};
use crate::engine::acquire::LockPlan;
use crate::protocol::YEAR;

/// Lease time when none is given: long enough to survive a garbage collection or a failover, short enough
/// that a crash does not block others for long.
pub const DEFAULT_TTL: Duration = Duration::from_secs(30);
/// Shortest lease: below this, network delays would eat most of it.
pub const MIN_TTL: Duration = Duration::from_millis(50);
/// Shortest end that can be set exactly: what is nearly over may be ended.
const MIN_EXACT_TTL: Duration = Duration::from_millis(1);
/// Longest lease and longest wait: a longer time is a mistake in units.
pub const MAX_TTL: Duration = YEAR;
/// How long `acquire` waits when no wait is given: about as long as a person does.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// How long a lease is renewed when `max_hold` is not given: a holder that hangs must not block for ever.
pub const DEFAULT_MAX_HOLD: Duration = Duration::from_secs(3600);
/// How long a call that does not wait may take: several times a slow round trip.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shortest timeout of a client.
const MIN_TIMEOUT: Duration = Duration::from_millis(10);
/// What is put before a lock's name, as the older PHP classes do.
pub const DEFAULT_LOCK_PREFIX: &str = "Lock:";
/// What is put before a queue's name, as the older PHP classes do.
pub const DEFAULT_QUEUE_PREFIX: &str = "Queue:";
/// Longest label: it is stored with every grant.
const MAX_LABEL_BYTES: usize = 256;

/// How to acquire a lock.
///
/// ```
/// use std::time::Duration;
/// use stanchion::LockOptions;
///
/// let options = LockOptions::new().ttl(Duration::from_secs(30)).wait(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LockOptions {
    ttl: Option<Duration>,
    renew: Option<bool>,
    max_hold: Option<Duration>,
    wait: Option<Duration>,
    fail_fast: bool,
    adopt_unexpiring: Option<Duration>,
    label: Option<String>,
    weight: Option<u32>,
}

impl LockOptions {
    /// The defaults: wait 10 s at most; a lease of 30 s, renewed until release, for 1 h at most.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the store keeps the lease without renewal: 50 ms to 365 days (default 30 s). A lease with a ttl given
    /// is not renewed, unless [`LockOptions::renew`] is set.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Whether the lease is renewed in the background until release, at a third of its ttl. Default: yes if no ttl is
    /// given, otherwise no.
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = Some(renew);
        self
    }

    /// For how long a lease is renewed at most: its ttl to 365 days (default 1 h). Afterwards it is lost.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// How long `acquire` waits for the lock, up to 365 days (default 10 s); then it fails with `LockTimeout`.
    /// `try_acquire` never waits.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Fail with `LockTimeout` at once when the holder's remaining ttl is longer than the wait. Default: keep waiting,
    /// since holders release early.
    pub fn fail_fast(mut self, fail_fast: bool) -> Self {
        self.fail_fast = fail_fast;
        self
    }

    /// Take over another program's value that never expires (or not within a year), once this client has seen it
    /// unchanged for this long. Unsound if that program still runs. Default: never.
    pub fn adopt_unexpiring(mut self, grace: Duration) -> Self {
        self.adopt_unexpiring = Some(grace);
        self
    }

    /// Shown as the caller that computes (at most 256 bytes). Default: the client's label.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// How many permits of a semaphore to acquire, at most as many as it has (default 1). `InvalidArgument` for other
    /// locks.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Whether the wait is zero: a try.
    pub(crate) fn only_tries(&self) -> bool {
        self.wait.is_some_and(|wait| wait.is_zero())
    }

    pub(crate) fn given_weight(&self) -> Option<u32> {
        self.weight
    }

    /// Checks everything and fills in the defaults.
    pub(crate) fn plan(&self, name: LockName, settings: &Settings) -> Result<LockPlan, Error> {
        let ttl = checked_ttl("ttl", self.ttl.unwrap_or(DEFAULT_TTL))?;
        let renews = self.renew.unwrap_or(self.ttl.is_none());
        let max_hold = self.max_hold.unwrap_or(DEFAULT_MAX_HOLD);
        if renews && max_hold < ttl {
            return Err(Error::invalid(format!("max_hold ({max_hold:?}) is shorter than the ttl ({ttl:?})")));
        }
        let wait = self.wait.unwrap_or(DEFAULT_WAIT);
        for (option, time) in
            [("wait", Some(wait)), ("adopt_unexpiring", self.adopt_unexpiring), ("max_hold", Some(max_hold))]
        {
            if time.is_some_and(|time| time > MAX_TTL) {
                return Err(Error::invalid(format!("{option} is over 365 days")));
            }
        }
        Ok(LockPlan {
            max_hold: renews.then_some(max_hold),
            fail_fast: self.fail_fast,
            adopt_after: self.adopt_unexpiring,
            ..settings.plan(name, ttl, wait, self.label.as_deref())?
        })
    }
}

/// Checked options of a client.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) foreign_share: bool,
    pub(crate) owner: Arc<str>,
}

impl Settings {
    pub(crate) fn new(timeout: Option<Duration>, foreign_share: bool, label: &str) -> Result<Self, Error> {
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
        if !(MIN_TIMEOUT..=MAX_TTL).contains(&timeout) {
            return Err(Error::invalid(not_between("timeout", timeout, "10 ms")));
        }
        Ok(Self { timeout, foreign_share, owner: Owner::new(label)?.text() })
    }

    /// An acquire by this client, or by who is called `label`.
    pub(crate) fn plan(
        &self,
        name: LockName,
        ttl: Duration,
        wait: Duration,
        label: Option<&str>,
    ) -> Result<LockPlan, Error> {
        let owner = match label {
            Some(label) => Owner::new(label)?.text(),
            None => Arc::clone(&self.owner),
        };
        let foreign_share = self.gives_turns(&name);
        Ok(LockPlan { foreign_share, ..LockPlan::new(name, ttl, wait, self.timeout, owner) })
    }

    /// Whether other programs' lockers get a share of the grants. Only exclusive locks can have theirs.
    pub(crate) fn gives_turns(&self, name: &LockName) -> bool {
        self.foreign_share && name.kind() == LockKind::Exclusive
    }
}

/// Checks a ttl or lease: 50 ms to 365 days.
pub(crate) fn checked_ttl(what: &str, ttl: Duration) -> Result<Duration, Error> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) {
        Ok(ttl)
    } else {
        Err(Error::invalid(not_between(what, ttl, "50 ms")))
    }
}

/// How an extension sets the end of a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// To this long from now, or later if it ends later already.
    AtLeast(Duration),
    /// To exactly this long from now, also if that is earlier than before.
    Exactly(Duration),
}

impl Extent {
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::Exactly(_))
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::AtLeast(ttl) => checked_ttl("ttl", ttl).map(drop),
            Self::Exactly(ttl) if (MIN_EXACT_TTL..=MAX_TTL).contains(&ttl) => Ok(()),
            Self::Exactly(ttl) => Err(Error::invalid(not_between("ttl", ttl, "1 ms"))),
        }
    }
}

/// Who holds a lock, as it is stored with the grant: "pid host label".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) label: String,
}

impl Owner {
    pub(crate) fn new(label: &str) -> Result<Self, Error> {
        if label.len() > MAX_LABEL_BYTES || label.contains(char::is_control) {
            return Err(Error::invalid("a label has at most 256 bytes and no control characters"));
        }
        let host = nix::unistd::gethostname().ok().and_then(|host| host.into_string().ok());
        let host = host.unwrap_or_default().replace(char::is_whitespace, "");
        Ok(Self { pid: std::process::id(), host, label: label.to_owned() })
    }

    pub(crate) fn text(&self) -> Arc<str> {
        format!("{} {} {}", self.pid, self.host, self.label).into()
    }

    /// Reads the stored form. A text that has another form becomes the label.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.splitn(3, ' ');
        let pid = parts.next().and_then(|pid| pid.parse().ok());
        match (pid, parts.next(), parts.next()) {
            (Some(pid), Some(host), Some(label)) => Self { pid, host: host.into(), label: label.into() },
            _ => Self { pid: 0, host: String::new(), label: text.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::name::Prefixes;

    fn plan(options: &LockOptions) -> Result<LockPlan, Error> {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
        options.plan(name, &Settings::new(None, false, "app").unwrap())
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn without_a_ttl_the_lease_is_renewed() {
        let plan = plan(&LockOptions::new()).unwrap();
        assert_eq!((plan.ttl, plan.max_hold, plan.wait), (secs(30), Some(secs(3600)), secs(10)));
    }

    #[test]
    fn with_a_ttl_it_is_fixed_unless_asked() {
        let max_hold = |options: LockOptions| plan(&options).unwrap().max_hold;
        assert_eq!(max_hold(LockOptions::new().ttl(secs(5))), None);
        assert_eq!(max_hold(LockOptions::new().ttl(secs(5)).renew(true)), Some(secs(3600)));
        assert_eq!(max_hold(LockOptions::new().renew(false)), None);
    }

    #[test]
    fn times_out_of_range_are_invalid() {
        let bad = [
            LockOptions::new().ttl(Duration::ZERO),
            LockOptions::new().ttl(Duration::from_millis(49)),
            LockOptions::new().ttl(Duration::MAX),
            LockOptions::new().wait(Duration::MAX),
            LockOptions::new().max_hold(secs(29)),
            LockOptions::new().adopt_unexpiring(Duration::MAX),
            LockOptions::new().label("a\nb"),
            LockOptions::new().label("x".repeat(257)),
        ];
        for options in bad {
            assert_eq!(plan(&options).unwrap_err().kind(), ErrorKind::InvalidArgument, "{options:?}");
        }
        assert!(Settings::new(Some(Duration::ZERO), false, "").is_err());
    }

    #[test]
    fn an_owner_survives_its_stored_form() {
        let owner = Owner { pid: 7, host: "h".into(), label: "two words".into() };
        assert_eq!(Owner::parse(&owner.text()), owner);
        assert_eq!(Owner::parse("strange").label, "strange");
        assert_eq!(Owner::parse("7 h ").label, "");
    }
}
