//! Options of a cached value. Every default is a named constant with its reason.

use std::time::Duration;

use crate::base::error::{Error, ErrorKind, not_between};
use crate::base::name::LockName;
use crate::engine::acquire::LockPlan;
use crate::session::options::{DEFAULT_MAX_HOLD, DEFAULT_TTL, DEFAULT_WAIT, MAX_TTL, Settings, checked_ttl};

/// The default beta of the early refresh: the value for which Vattani, Chierichetti and Lowenstein ("Optimal
/// Probabilistic Cache Stampede Prevention", VLDB 2015) show the best result.
pub const DEFAULT_BETA: f64 = 1.0;
/// A larger one is a mistake: the value would hardly ever be taken for fresh.
const MAX_BETA: f64 = 1_000.0;
/// Shortest time for which a value is fresh: stores count in milliseconds.
const MIN_FRESH: Duration = Duration::from_millis(1);

/// How long a value is fresh and stale, and how it is computed: by one caller at a time (single flight).
///
/// ```
/// use std::time::Duration;
/// use stanchion::CachedOptions;
///
/// let options = CachedOptions::new(Duration::from_secs(60)).stale(Duration::from_secs(600));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CachedOptions {
    ttl: Duration,
    stale: Duration,
    beta: f64,
    wait: Duration,
    lease: Duration,
    max_run: Duration,
    without_store: bool,
    label: Option<String>,
}

impl CachedOptions {
    /// Fresh for this long (1 ms to 365 days). The other defaults: never stale, early refresh with a beta of 1, wait
    /// 10 s at most, a lease of 30 s that is renewed for 1 h at most.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            stale: Duration::ZERO,
            beta: DEFAULT_BETA,
            wait: DEFAULT_WAIT,
            lease: DEFAULT_TTL,
            max_run: DEFAULT_MAX_HOLD,
            without_store: true,
            label: None,
        }
    }

    /// For how long after its `ttl` the old value is still returned while one caller computes a new one: at most 365 days
    /// (default 0: then all wait).
    pub fn stale(mut self, stale: Duration) -> Self {
        self.stale = stale;
        self
    }

    /// Early refresh: before the `ttl` is over one caller, chosen at random, computes the value anew while the others
    /// still get the old one. The longer the last computation took, and the larger beta, the earlier: `-ln(random) *
    /// beta` computation times before the end. Default 1; 0 turns it off; at most 1000.
    pub fn beta(mut self, beta: f64) -> Self {
        self.beta = beta;
        self
    }

    /// How long to wait for the value that another caller computes, up to 365 days (default 10 s); then the call fails with
    /// `LockTimeout`.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// If the computing caller dies, another may compute after this time: 50 ms to 365 days (default 30 s). While it lives
    /// it renews its lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a computation may take before another caller computes: the lease to 365 days (default 1 h).
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.max_run = max_run;
        self
    }

    /// Whether every caller computes by itself, and stores nothing, when the store has not answered for a second
    /// (default: yes). For five seconds after that the client does not ask the store. If not, the caller waits, and fails
    /// with `StoreUnavailable` in the end: for values that must never be computed twice at a time.
    pub fn without_store(mut self, compute: bool) -> Self {
        self.without_store = compute;
        self
    }

    /// Shown as the caller that computes (at most 256 bytes). Default: the client's label.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Checks everything, and draws the random number of an early refresh.
    pub(crate) fn plan(&self, name: LockName, settings: &Settings) -> Result<CachedPlan, Error> {
        let Self { ttl, stale, beta, wait, max_run, .. } = *self;
        if !(MIN_FRESH..=MAX_TTL).contains(&ttl) {
            return Err(Error::invalid(not_between("ttl", ttl, "1 ms")));
        }
        for (option, time) in [("stale", stale), ("wait", wait), ("max_run", max_run)] {
            if time > MAX_TTL {
                return Err(Error::invalid(format!("{option} is over 365 days")));
            }
        }
        let lease = checked_ttl("lease", self.lease)?;
        if max_run < lease {
            return Err(Error::invalid(format!(
                "max_run ({max_run:?}) is shorter than the lease ({lease:?})"
            )));
        }
        if !(0.0..=MAX_BETA).contains(&beta) {
            return Err(Error::invalid(format!("beta {beta} is not between 0 and {MAX_BETA}")));
        }
        let lock = LockPlan {
            max_hold: Some(max_run),
            can_do_without: self.without_store,
            early: -(1.0 - fastrand::f64()).ln() * beta,
            ..settings.plan(name, lease, wait, self.label.as_deref())?
        };
        Ok(CachedPlan { lock, ttl, stale })
    }
}

/// Fresh for this long, with the other defaults.
impl From<Duration> for CachedOptions {
    fn from(ttl: Duration) -> Self {
        Self::new(ttl)
    }
}

/// Checked options of one call.
#[derive(Clone, Debug)]
pub(crate) struct CachedPlan {
    pub(crate) lock: LockPlan,
    pub(crate) ttl: Duration,
    pub(crate) stale: Duration,
}

impl CachedPlan {
    /// The same for a caller that has waited, with this much time left. A value that is new by then is not refreshed early.
    pub(crate) fn within(&self, left: Duration) -> Self {
        Self { lock: LockPlan { early: 0.0, ..self.lock.within(left) }, ..self.clone() }
    }

    pub(crate) fn without_waiting(&self) -> Self {
        Self { lock: LockPlan { wait: Duration::ZERO, ..self.lock.clone() }, ..self.clone() }
    }

    /// Whether to wait after a try that found this.
    pub(crate) fn is_to_wait<T>(&self, tried: &Result<Option<T>, Error>) -> bool {
        let may_become_better = match tried {
            Ok(found) => found.is_none(),
            Err(error) => error.kind() == ErrorKind::StoreUnavailable && !self.lock.can_do_without,
        };
        may_become_better && !self.lock.wait.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn plan(options: &CachedOptions) -> Result<CachedPlan, Error> {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
        options.plan(name, &Settings::new(None, false, "").unwrap())
    }

    #[test]
    fn options_out_of_range_are_invalid() {
        let new = || CachedOptions::new(secs(60));
        let bad = [
            CachedOptions::new(Duration::ZERO),
            CachedOptions::new(Duration::MAX),
            new().stale(Duration::MAX),
            new().wait(Duration::MAX),
            new().lease(Duration::from_millis(49)),
            new().lease(secs(60)).max_run(secs(59)),
            new().max_run(Duration::MAX),
            new().beta(-0.1),
            new().beta(f64::NAN),
            new().beta(f64::INFINITY),
            new().label("a\nb"),
        ];
        for options in bad {
            let error = plan(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{options:?}");
        }
    }

    #[test]
    fn the_lot_is_exponential_and_beta_zero_draws_none() {
        let early = |beta: f64| plan(&CachedOptions::new(secs(60)).beta(beta)).unwrap().lock.early;
        assert!((0..100).all(|_| early(0.0) == 0.0));
        let mean = (0..10_000).map(|_| early(2.0)).sum::<f64>() / 10_000.0;
        assert!((1.8..2.2).contains(&mean), "{mean}");
    }
}
