//! What a client counts and times, as Prometheus metrics.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder,
};

use crate::base::contained::panics;
use crate::base::error::{Error, ErrorKind};
use crate::base::wake::locked;
use crate::engine::acquire::Acquired;
use crate::engine::loss::LossReason;
use crate::engine::schedule::FiredSchedule;
use crate::engine::take::TakeEnd;
use crate::protocol::{Failure, FailureKind, Outcome, Verdict};

/// Upper bounds of all histograms, in seconds: from what a request to a near store takes to the default `max_hold`.
const BUCKETS: [f64; 21] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0, 60.0, 300.0, 900.0, 3600.0,
];
/// Queues with numbers of their own; more are counted together. A program may make up names without end.
const QUEUES_MAX: usize = 100;
/// The label of the queues that are counted together. No queue can have this name: a name has no empty braces.
const OTHER_QUEUES: &str = "{}";

/// What a client has counted since it was opened in this process, one number for each sample of its Prometheus text.
///
/// A sample is named as in the text, with its labels: `stanchion_lock_acquires_total{outcome="granted"}`. The
/// names are listed in docs/METRICS.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    samples: Vec<(String, f64)>,
    text: String,
}

impl Metrics {
    fn of_text(text: String) -> Self {
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self { samples: lines.filter_map(sample).collect(), text }
    }

    /// The value of a sample; `None` if there is none of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.samples.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The same in Prometheus' text format 0.0.4.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All samples with their values, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.samples.iter().map(|(name, value)| (&**name, *value))
    }
}

/// The counters and histograms of a client's life in one process.
pub(crate) struct Meters {
    registry: Registry,
    acquires: IntCounterVec,
    granted: IntCounter,
    released: IntCounter,
    ended: IntCounterVec,
    wait: Histogram,
    hold: Histogram,
    takes: IntCounterVec,
    take_wait: Histogram,
    renewals: IntCounterVec,
    requests: Histogram,
    retries: IntCounter,
    failures: IntCounterVec,
    families: QueueFamilies,
    queues: Mutex<HashMap<Box<str>, Arc<QueueMeters>>>,
}

struct QueueFamilies {
    enqueued: IntCounterVec,
    claimed: IntCounterVec,
    popped: IntCounterVec,
    settled: IntCounterVec,
    stale: IntCounterVec,
    lost: IntCounterVec,
    slots: IntCounterVec,
    lateness: HistogramVec,
    run: HistogramVec,
}

/// The numbers of one queue.
pub(crate) struct QueueMeters {
    name: Box<str>,
    enqueued: IntCounterVec,
    pub(crate) claimed: IntCounter,
    pub(crate) popped: IntCounter,
    settled: IntCounterVec,
    pub(crate) stale: IntCounter,
    lost: IntCounterVec,
    slots: IntCounterVec,
    lateness: Histogram,
    run: Histogram,
}

/// How the lease of a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Released, and it was ours until then.
    Released,
    /// Released without a reply: whether it was valid until then is not known.
    Unconfirmed,
    /// Released, and the reply showed that it had been lost.
    Gone,
    /// Dropped; it is released in the background.
    Dropped,
    /// Handed over to another process.
    Detached,
    /// A claim: a verdict was given.
    Settled,
    Lost(LossReason),
}

impl Ended {
    /// By the answer to a release.
    pub(crate) fn by_release(released: &Result<(), Error>) -> Self {
        match released.as_ref().map_err(Error::kind) {
            Ok(()) => Self::Released,
            Err(ErrorKind::LeaseExpired) => Self::Lost(LossReason::Expired),
            Err(ErrorKind::LeaseLost) => Self::Gone,
            Err(_) => Self::Unconfirmed,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Unconfirmed => "unconfirmed",
            Self::Gone => "gone",
            Self::Dropped => "dropped",
            Self::Detached => "detached",
            Self::Settled => "settled",
            Self::Lost(reason) => reason.name(),
        }
    }
}

const ENDS: [&str; 13] = [
    "released",
    "unconfirmed",
    "gone",
    "dropped",
    "detached",
    "expired",
    "max_hold",
    "taken",
    "broken",
    "forgotten",
    "overwritten",
    "removed",
    "refused",
];

impl Meters {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::registered().map_err(|error| {
            Error::new(ErrorKind::Internal, "the metrics could not be made").with_source(error)
        })
    }

    fn registered() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let make = Maker(&registry);
        let acquires = make.counters(
            "lock_acquires_total",
            "Acquires of locks by how they ended.",
            &["outcome"],
            &["granted", "cached", "busy", "timeout", "cancelled", "failed"],
        )?;
        let ended = make.counters(
            "lock_leases_ended_total",
            "Leases of locks by how they ended.",
            &["reason"],
            &ENDS,
        )?;
        if let Some(panics) = panics() {
            registry.register(Box::new(panics))?;
        }
        let families = QueueFamilies {
            enqueued: make.counters(
                "queue_enqueued_total",
                "Tasks by what their enqueue did.",
                &["queue", "outcome"],
                &[],
            )?,
            claimed: make.counters("queue_claimed_total", "Tasks that were claimed.", &["queue"], &[])?,
            popped: make.counters("queue_popped_total", "Tasks that were popped.", &["queue"], &[])?,
            settled: make.counters(
                "queue_settled_total",
                "Claims by the verdict that the store accepted.",
                &["queue", "verdict"],
                &[],
            )?,
            stale: make.counters(
                "queue_stale_receipts_total",
                "Verdicts that came too late: the task was delivered again, settled or removed meanwhile.",
                &["queue"],
                &[],
            )?,
            lost: make.counters(
                "queue_claims_lost_total",
                "Claims whose lease was lost before a verdict, by the reason.",
                &["queue", "reason"],
                &[],
            )?,
            slots: make.counters(
                "queue_schedule_slots_total",
                "Slots of schedules that this client saw to, by what became of them.",
                &["queue", "outcome"],
                &[],
            )?,
            lateness: make.histograms(
                "queue_lateness_seconds",
                "How long after they were due tasks were claimed, by the wall clock of the claiming process.",
            )?,
            run: make.histograms("queue_run_seconds", "From a claim to its verdict or loss.")?,
        };
        Ok(Self {
            granted: acquires.with_label_values(&["granted"]),
            acquires,
            released: ended.with_label_values(&["released"]),
            ended,
            wait: make.histogram("lock_wait_seconds", "From the call of an acquire to its grant.")?,
            hold: make.histogram("lock_hold_seconds", "From the grant of a lock's lease to its end.")?,
            takes: make.counters(
                "limiter_takes_total",
                "Takes of limiters by how they ended.",
                &["outcome"],
                &["allowed", "waited", "refused", "cancelled", "failed"],
            )?,
            take_wait: make
                .histogram("limiter_wait_seconds", "From the call of a take that had to wait to its turn.")?,
            renewals: make.counters(
                "renewals_total",
                "Renewals in the background, of locks and claims, by how they ended.",
                &["outcome"],
                &["ok", "failed"],
            )?,
            requests: make
                .histogram("store_request_seconds", "Requests that the store answered: how long.")?,
            retries: make
                .counters("store_retries_total", "Requests that were sent again.", &[], &[])?
                .with_label_values::<&str>(&[]),
            failures: make.counters(
                "store_failures_total",
                "Requests without an answer, and those that were refused.",
                &["kind"],
                &["not_sent", "lost", "refused", "final"],
            )?,
            families,
            queues: Mutex::default(),
            registry,
        })
    }

    /// What was counted, as Prometheus text.
    pub(crate) fn text(&self) -> Result<String, Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(|error| {
            Error::new(ErrorKind::Internal, "the metrics could not be encoded").with_source(error)
        })
    }

    pub(crate) fn snapshot(&self) -> Result<Metrics, Error> {
        self.text().map(Metrics::of_text)
    }

    /// An acquire has ended; `took` is how long it took.
    pub(crate) fn acquired(&self, result: Result<&Acquired, &Error>, took: Duration) {
        let outcome = match result.map_err(Error::kind) {
            Ok(Acquired::Granted(_)) => {
                self.granted.inc();
                return self.wait.observe(took.as_secs_f64());
            }
            Ok(Acquired::Cached { .. }) => "cached",
            Ok(Acquired::Busy) => "busy",
            Err(ErrorKind::LockTimeout) => "timeout",
            Err(ErrorKind::Cancelled) => "cancelled",
            Err(_) => "failed",
        };
        self.acquires.with_label_values(&[outcome]).inc();
    }

    /// The future of an acquire was dropped.
    pub(crate) fn acquire_dropped(&self) {
        self.acquires.with_label_values(&["cancelled"]).inc();
    }

    /// A take has ended; `took` is how long it took.
    pub(crate) fn taken(&self, result: Result<&TakeEnd, &Error>, took: Duration) {
        let outcome = match result.map_err(Error::kind) {
            Ok(TakeEnd::Allowed { waited: false }) => "allowed",
            Ok(TakeEnd::Allowed { waited: true }) => {
                self.take_wait.observe(took.as_secs_f64());
                "waited"
            }
            Ok(TakeEnd::RetryAfter(_)) => "refused",
            Err(ErrorKind::Cancelled) => "cancelled",
            Err(_) => "failed",
        };
        self.takes.with_label_values(&[outcome]).inc();
    }

    /// The future of a take was dropped.
    pub(crate) fn take_dropped(&self) {
        self.takes.with_label_values(&["cancelled"]).inc();
    }

    pub(crate) fn lease_ended(&self, ended: Ended, held: Duration) {
        self.hold.observe(held.as_secs_f64());
        match ended {
            Ended::Released => self.released.inc(),
            ended => self.ended.with_label_values(&[ended.name()]).inc(),
        }
    }

    pub(crate) fn renewed(&self, ok: bool) {
        self.renewals.with_label_values(&[if ok { "ok" } else { "failed" }]).inc();
    }

    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    /// A request was answered, or was not; `took` is how long that took.
    pub(crate) fn asked(&self, failure: Option<&Failure>, took: Duration) {
        let Some(failure) = failure else { return self.requests.observe(took.as_secs_f64()) };
        let kind = match failure.kind {
            FailureKind::NotSent => "not_sent",
            FailureKind::Lost | FailureKind::Spent => "lost",
            FailureKind::Refused => "refused",
            FailureKind::Final(_) => "final",
        };
        self.failures.with_label_values(&[kind]).inc();
    }

    /// The numbers of a queue.
    pub(crate) fn queue(&self, name: &str) -> Arc<QueueMeters> {
        let mut queues = locked(&self.queues);
        if let Some(known) = queues.get(name) {
            return Arc::clone(known);
        }
        let name = if queues.len() < QUEUES_MAX { name } else { OTHER_QUEUES };
        Arc::clone(queues.entry(name.into()).or_insert_with(|| Arc::new(self.families.queue(name))))
    }
}

impl QueueFamilies {
    fn queue(&self, name: &str) -> QueueMeters {
        QueueMeters {
            enqueued: self.enqueued.clone(),
            claimed: self.claimed.with_label_values(&[name]),
            popped: self.popped.with_label_values(&[name]),
            settled: self.settled.clone(),
            stale: self.stale.with_label_values(&[name]),
            lost: self.lost.clone(),
            slots: self.slots.clone(),
            lateness: self.lateness.with_label_values(&[name]),
            run: self.run.with_label_values(&[name]),
            name: name.into(),
        }
    }
}

impl QueueMeters {
    /// A task was taken in, or not: `None` if the queue is full.
    pub(crate) fn enqueued(&self, outcome: Option<Outcome>) {
        self.enqueued.with_label_values(&[&*self.name, outcome.map_or("full", Outcome::name)]).inc();
    }

    /// The enqueue of so many tasks ended without a reply that has its outcome.
    pub(crate) fn not_enqueued(&self, error: ErrorKind, tasks: u64) {
        let outcome = if error == ErrorKind::Cancelled { "cancelled" } else { "failed" };
        self.enqueued.with_label_values(&[&*self.name, outcome]).inc_by(tasks);
    }

    /// A schedule was fired.
    pub(crate) fn fired(&self, fired: &FiredSchedule) {
        for (outcome, slots) in [("fired", fired.tasks), ("skipped", fired.skipped), ("missed", fired.missed)]
        {
            if slots > 0 {
                self.slots.with_label_values(&[&*self.name, outcome]).inc_by(slots);
            }
        }
    }

    pub(crate) fn late(&self, by: Duration) {
        self.lateness.observe(by.as_secs_f64());
    }

    pub(crate) fn settled(&self, verdict: &Verdict) {
        self.settled.with_label_values(&[&*self.name, verdict.operation()]).inc();
    }

    pub(crate) fn claim_ended(&self, ended: Ended, ran: Duration) {
        self.run.observe(ran.as_secs_f64());
        if let Ended::Lost(_) | Ended::Dropped = ended {
            self.lost.with_label_values(&[&*self.name, ended.name()]).inc();
        }
    }
}

/// Creates metrics and registers them.
struct Maker<'a>(&'a Registry);

impl Maker<'_> {
    /// With the values that its label can have, so that each is reported from the beginning, as 0.
    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        values: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        let counters = IntCounterVec::new(Opts::new(format!("stanchion_{name}"), help), labels)?;
        for value in values {
            counters.with_label_values(&[value]);
        }
        self.0.register(Box::new(counters.clone()))?;
        Ok(counters)
    }

    fn histogram(&self, name: &str, help: &str) -> prometheus::Result<Histogram> {
        let histogram = Histogram::with_opts(options(name, help))?;
        self.0.register(Box::new(histogram.clone()))?;
        Ok(histogram)
    }

    fn histograms(&self, name: &str, help: &str) -> prometheus::Result<HistogramVec> {
        let histograms = HistogramVec::new(options(name, help), &["queue"])?;
        self.0.register(Box::new(histograms.clone()))?;
        Ok(histograms)
    }
}

fn options(name: &str, help: &str) -> HistogramOpts {
    HistogramOpts::new(format!("stanchion_{name}"), help).buckets(BUCKETS.to_vec())
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}

impl fmt::Debug for QueueMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueueMeters({:?})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: &str = "stanchion_lock_acquires_total{outcome=\"granted\"}";

    #[test]
    fn every_number_is_there_from_the_beginning() {
        let metrics = Meters::new().unwrap().snapshot().unwrap();
        assert_eq!(metrics.get(GRANTED), Some(0.0));
        assert_eq!(metrics.get("stanchion_lock_wait_seconds_bucket{le=\"0.0001\"}"), Some(0.0));
        assert_eq!(metrics.get("stanchion_store_retries_total"), Some(0.0));
        for end in ENDS {
            let name = format!("stanchion_lock_leases_ended_total{{reason=\"{end}\"}}");
            assert_eq!(metrics.get(&name), Some(0.0), "{end}");
        }
        assert_eq!(metrics.get("stanchion_lock_acquires_total"), None);
    }

    #[test]
    fn a_queue_with_a_strange_name_is_one_line() {
        let meters = Meters::new().unwrap();
        meters.queue("a \"b\\c").claimed.inc();
        let metrics = meters.snapshot().unwrap();
        assert_eq!(metrics.get(r#"stanchion_queue_claimed_total{queue="a \"b\\c"}"#), Some(1.0));
    }

    #[test]
    fn queues_without_end_are_counted_together() {
        let meters = Meters::new().unwrap();
        for number in 0..QUEUES_MAX + 50 {
            meters.queue(&number.to_string()).claimed.inc();
        }
        let metrics = meters.snapshot().unwrap();
        assert_eq!(metrics.get("stanchion_queue_claimed_total{queue=\"0\"}"), Some(1.0));
        assert_eq!(metrics.get("stanchion_queue_claimed_total{queue=\"{}\"}"), Some(50.0));
        let lines = metrics.iter().filter(|(name, _)| name.starts_with("stanchion_queue_claimed_total"));
        assert_eq!(lines.count(), QUEUES_MAX + 1);
    }
}
