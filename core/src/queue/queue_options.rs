//! Options of claims and workers, and settings of queues.

use std::time::Duration;

use crate::base::error::{Error, not_between};
use crate::protocol::{Configure, EVENTS_MAX, List, MAX_BATCH, Place, Rate, TaskState};
use crate::session::options::{DEFAULT_MAX_HOLD, DEFAULT_TTL, MAX_TTL, checked_ttl};

/// How to claim tasks.
///
/// ```
/// use std::time::Duration;
/// use stanchion::ClaimOptions;
///
/// let options = ClaimOptions::new().max(10).wait(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimOptions {
    max: usize,
    lease: Option<Duration>,
    renew: Option<bool>,
    max_run: Option<Duration>,
    timeout: Option<Duration>,
    wait: Duration,
    patient: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        let wait = Duration::ZERO;
        Self { max: 1, lease: None, renew: None, max_run: None, timeout: None, wait, patient: true }
    }
}

impl ClaimOptions {
    /// The defaults: one task; a lease of 30 s, renewed until the claim is settled, for 1 h at most; no wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tasks at most: 1 to 1,000 (default 1). One call also takes no more than 1 MiB of payloads, or one task.
    pub fn max(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// How long the store keeps a claim without renewal: 50 ms to 365 days (default 30 s). With a lease given the claim is
    /// not renewed, unless [`ClaimOptions::renew`] is set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Whether claims are renewed in the background until they are settled. Default: yes if no lease is given, otherwise
    /// no.
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = Some(renew);
        self
    }

    /// For how long a claim is renewed at most: its lease to 365 days (default 1 h). Afterwards it is lost.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.max_run = Some(max_run);
        self
    }

    /// How long a run of a task may take that does not say so itself: 1 ms to 365 days (default: as long as its claim is
    /// renewed). A run that takes longer has failed with the reason `timeout`: see [`Task::timeout`](crate::Task::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A wait fails when the store has not answered for the client's timeout.
    pub(crate) fn impatient(mut self) -> Self {
        self.patient = false;
        self
    }

    /// How long to wait for a task, up to 365 days (default: not at all). If none comes in time, the result is empty.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Checks everything and fills in the defaults.
    pub(crate) fn plan(&self) -> Result<ClaimPlan, Error> {
        let lease = checked_ttl("lease", self.lease.unwrap_or(DEFAULT_TTL))?;
        let renews = self.renew.unwrap_or(self.lease.is_none());
        let max_run = self.max_run.unwrap_or(DEFAULT_MAX_HOLD.max(lease));
        if renews && max_run < lease {
            return Err(Error::invalid(format!(
                "max_run ({max_run:?}) is shorter than the lease ({lease:?})"
            )));
        }
        for (option, time) in [("wait", self.wait), ("max_run", max_run)] {
            if time > MAX_TTL {
                return Err(Error::invalid(format!("{option} is over 365 days")));
            }
        }
        if let Some(timeout) = self.timeout
            && !(Duration::from_millis(1)..=MAX_TTL).contains(&timeout)
        {
            return Err(Error::invalid(not_between("timeout", timeout, "1 ms")));
        }
        Ok(ClaimPlan {
            max: checked_count("max", self.max)?,
            lease,
            timeout: self.timeout,
            max_run: renews.then_some(max_run),
            wait: self.wait,
            patient: self.patient,
        })
    }
}

/// Checked options of one claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimPlan {
    pub(crate) max: u32,
    pub(crate) lease: Duration,
    /// `None` if claims are not renewed.
    pub(crate) max_run: Option<Duration>,
    /// For tasks that do not say how long a run may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) wait: Duration,
    /// Whether a wait goes on while the store does not answer, instead of failing after the client's timeout.
    pub(crate) patient: bool,
}

/// What to list, and how much of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use stanchion::{Client, ListOptions, TaskState};
///
/// let queue = Client::open("memory:").await?.queue("emails");
/// let mut options = ListOptions::new(TaskState::Dead).prefix("user:").payloads(false);
/// loop {
///     let page = queue.list(options.clone()).await?;
///     page.tasks.iter().for_each(|task| println!("{}: {}", task.id, task.reason));
///     let Some(next) = page.next else { break };
///     options = options.page(next);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it only says what to list"]
pub struct ListOptions {
    state: TaskState,
    prefix: String,
    payloads: bool,
    page: Option<String>,
    max: usize,
}

impl ListOptions {
    /// The first 100 tasks of this state, with their payloads.
    pub fn new(state: TaskState) -> Self {
        Self { state, prefix: String::new(), payloads: true, page: None, max: 100 }
    }

    /// Only tasks whose id begins with this text. A page looks at 1,000 tasks at most: it may have few tasks or none and
    /// yet not be the last.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether to fetch payloads and headers (default: yes). If not, both are empty; `size` is set all the same.
    pub fn payloads(mut self, payloads: bool) -> Self {
        self.payloads = payloads;
        self
    }

    /// Which page: [`TaskPage::next`](crate::TaskPage::next) of the one before (default: the first).
    pub fn page(mut self, page: impl Into<String>) -> Self {
        self.page = Some(page.into());
        self
    }

    /// At most so many tasks: 1 to 1,000 (default 100).
    pub fn max(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    pub(crate) fn checked(&self) -> Result<List, Error> {
        let place = |page: &String| {
            let place = Place::parse(page).filter(|place| self.state.parts().contains(&place.part));
            place.ok_or_else(|| {
                Error::invalid(format!("page {page:?} was not returned by this listing; begin without one"))
            })
        };
        Ok(List {
            state: self.state,
            prefix: self.prefix.as_str().into(),
            bodies: self.payloads,
            from: self.page.as_ref().map(place).transpose()?,
            max: checked_count("max", self.max)?,
        })
    }
}

/// A number of tasks: 1 to 1,000.
pub(crate) fn checked_count(what: &str, count: usize) -> Result<u32, Error> {
    let checked = u32::try_from(count).ok().filter(|_| (1..=MAX_BATCH).contains(&count));
    checked.ok_or_else(|| Error::invalid(format!("{what} {count} is not between 1 and {MAX_BATCH}")))
}

/// What [`Queue::configure`](crate::Queue::configure) changes, for all programs that use the queue. What is not set here
/// stays as it is.
///
/// ```
/// use std::time::Duration;
/// use stanchion::QueueConfig;
///
/// let config = QueueConfig::new().max_len(Some(100_000)).dead_age(Duration::from_secs(7 * 24 * 3600));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a config does nothing until it is passed to configure"]
pub struct QueueConfig(Configure);

impl QueueConfig {
    /// Changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuse new ids with `QueueFull` when so many tasks are live; `None` for no limit (the default). Not 0.
    pub fn max_len(mut self, max_len: Option<u64>) -> Self {
        self.0.max_len = Some(max_len);
        self
    }

    /// How many dead tasks are kept, of those that failed and again of those that expired (default 10,000). The oldest go
    /// first.
    pub fn dead_max(mut self, count: u64) -> Self {
        self.0.dead_max = Some(count);
        self
    }

    /// How long dead tasks are kept: at most 365 days (default 90 days).
    pub fn dead_age(mut self, age: Duration) -> Self {
        self.0.dead_age = Some(age);
        self
    }

    /// How many bytes of dead tasks' payloads are kept (default 256 MiB). The oldest go first.
    pub fn dead_bytes(mut self, bytes: u64) -> Self {
        self.0.dead_bytes = Some(bytes);
        self
    }

    /// Whether plain ZADDs to the queue's key are taken in (default: yes). Only Redis has them.
    pub fn intake(mut self, intake: bool) -> Self {
        self.0.intake = Some(intake);
        self
    }

    /// How many events are kept, for [`Queue::events`](crate::Queue::events): 0 to 100,000 (default 0: none). The oldest go first.
    /// What processes of 0.1.0 do is not among them.
    pub fn events(mut self, count: u64) -> Self {
        self.0.events = Some(count);
        self
    }

    /// How many tasks run at once at most, whoever runs them; `None` for no limit (the default). Not 0.
    pub fn max_running(mut self, most: Option<u64>) -> Self {
        self.0.max_running = Some(most);
        self
    }

    /// How many tasks are delivered per time at most; `None` for no limit (the default). Every delivery counts, also a retry and
    /// one that is put back.
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.0.rate = Some(rate);
        self
    }

    /// How many tasks of each key ([`Task::key`](crate::Task::key)) are in line and running at most, unless the key has limits of
    /// its own; `None` for no limit (the default). Not 0.
    pub fn key_concurrency(mut self, most: Option<u32>) -> Self {
        self.0.key_concurrency = Some(most);
        self
    }

    /// How many tasks of each key are delivered per time at most, unless the key has limits of its own; `None` for no limit (the
    /// default).
    pub fn key_rate(mut self, rate: Option<Rate>) -> Self {
        self.0.key_rate = Some(rate);
        self
    }

    /// Checks everything.
    pub(crate) fn checked(&self) -> Result<Configure, Error> {
        /// Numbers above this are not exact in every language and store.
        const MOST: u64 = 1 << 53;
        let Configure { max_len, dead_max, dead_age, dead_bytes, .. } = &self.0;
        let max_running = self.0.max_running.flatten();
        let counts = [
            ("max_len", max_len.flatten()),
            ("max_running", max_running),
            ("dead_max", *dead_max),
            ("dead_bytes", *dead_bytes),
        ];
        for (option, count) in counts {
            if count.is_some_and(|count| count > MOST) {
                return Err(Error::invalid(format!("{option} is over 2^53")));
            }
        }
        if *max_len == Some(Some(0)) {
            return Err(Error::invalid(
                "max_len 0 would refuse every task; pause the workers or drop the queue",
            ));
        }
        if max_running == Some(0) || self.0.key_concurrency == Some(Some(0)) {
            return Err(Error::invalid("with a limit of 0 nothing would run; pause the queue"));
        }
        for (option, rate) in [("rate", self.0.rate), ("key_rate", self.0.key_rate)] {
            rate.flatten().map(|rate| rate.check(option)).transpose()?;
        }
        if dead_age.is_some_and(|age| age > MAX_TTL) {
            return Err(Error::invalid("dead_age is over 365 days"));
        }
        if self.0.events.is_some_and(|count| count > EVENTS_MAX) {
            return Err(Error::invalid("events is over 100,000"));
        }
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn the_defaults_follow_the_locks() {
        let plan = ClaimOptions::new().plan().unwrap();
        assert_eq!((plan.max, plan.lease), (1, DEFAULT_TTL));
        assert_eq!(plan.max_run, Some(DEFAULT_MAX_HOLD), "renewed when no lease is given");
        let fixed = ClaimOptions::new().lease(Duration::from_secs(5)).plan().unwrap();
        assert_eq!(fixed.max_run, None);
    }

    #[test]
    fn bad_options_are_refused() {
        let new = ClaimOptions::new;
        let secs = Duration::from_secs;
        let bad = [
            new().max(0),
            new().max(1_001),
            new().lease(Duration::ZERO),
            new().lease(Duration::MAX),
            new().wait(Duration::MAX),
            new().lease(secs(30)).renew(true).max_run(secs(1)),
            new().max_run(Duration::MAX),
        ];
        for options in bad {
            assert_eq!(options.plan().unwrap_err().kind(), ErrorKind::InvalidArgument, "{options:?}");
        }
        let settings = QueueConfig::new;
        for bad in [
            settings().max_len(Some(0)),
            settings().max_len(Some(u64::MAX)),
            settings().dead_max(u64::MAX),
            settings().dead_age(Duration::MAX),
            settings().max_running(Some(0)),
            settings().max_running(Some(u64::MAX)),
            settings().key_concurrency(Some(0)),
            settings().rate(Some(Rate::new(0, secs(1)))),
            settings().key_rate(Some(Rate::new(1, secs(1)).burst(0))),
        ] {
            assert_eq!(bad.checked().unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
        }
    }
}
