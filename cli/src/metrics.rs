//! `stanchion metrics`, what the store knows as Prometheus text, and the file in which `stanchion work` tells what it
//! has counted itself.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};
use serde_json::{Map, Value};
use stanchion::blocking::Client;
use stanchion::{ErrorKind, LockKind};

use crate::arguments::Globals;
use crate::exit;
use crate::failure::Failure;
use crate::locks;
use crate::output::print;
use crate::queues;
use crate::report::Report;
use crate::store;

/// How often the file is written anew: Prometheus looks every 15 s, mostly.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// Others read it.
const FILE_MODE: u32 = 0o644;

/// Prints what the store knows of these queues, or of all, and of the locks that are held.
pub fn metrics(names: &[String], globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let client = store::open(globals, report)?;
    let names = if names.is_empty() { all_queues(&client)? } else { names.to_vec() };
    let gauges = Gauges::new().map_err(|error| internal(&error))?;
    for name in &names {
        gauges.look_at_queue(&client, name)?;
    }
    for kind in LockKind::ALL {
        gauges.look_at_locks(&client, kind)?;
    }
    let text =
        TextEncoder::new().encode_to_string(&gauges.registry.gather()).map_err(|error| internal(&error))?;
    print(if globals.json { as_json(&text) } else { text }.as_bytes())?;
    Ok(exit::DONE)
}

/// A quorum has none.
fn all_queues(client: &Client) -> Result<Vec<String>, Failure> {
    match client.queue_names(None) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        _ => Ok(queues::names(client)?.into_iter().collect()),
    }
}

struct Gauges {
    registry: Registry,
    tasks: IntGaugeVec,
    paused: IntGaugeVec,
    next_due: GaugeVec,
    lateness: GaugeVec,
    /// Enqueued, acked, retried, died.
    totals: [IntCounterVec; 4],
    queue_waiters: IntGaugeVec,
    schedules: IntGaugeVec,
    schedules_late: GaugeVec,
    flows: IntGaugeVec,
    held: IntGaugeVec,
    waiters: IntGaugeVec,
}

impl Gauges {
    fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let total = |name: &str, help: &str| {
            let counter = IntCounterVec::new(
                Opts::new(format!("stanchion_queue_tasks_{name}_total"), help),
                &["queue"],
            )?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = IntGaugeVec::new(Opts::new(format!("stanchion_{name}"), help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let seconds = |name: &str, help: &str| {
            let gauge =
                GaugeVec::new(Opts::new(format!("stanchion_queue_{name}_seconds"), help), &["queue"])?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        Ok(Self {
            tasks: gauge(
                "queue_tasks",
                "Tasks by their state; a successor waits for the run of its id.",
                &["queue", "state"],
            )?,
            paused: gauge("queue_paused", "1 if the queue is paused.", &["queue"])?,
            queue_waiters: gauge("queue_waiters", "Calls that wait for a task of the queue.", &["queue"])?,
            next_due: seconds(
                "next_due",
                "Until the next task can be claimed: 0 if one is ready; absent if there is none.",
            )?,
            schedules: gauge("queue_schedules", "Schedules of the queue.", &["queue"])?,
            schedules_late: seconds(
                "schedules_late",
                "For how long the first schedule has been due, and nobody has fired it; 0 if none is.",
            )?,
            flows: gauge("queue_flows", "Flows of the queue that have begun and not ended.", &["queue"])?,
            lateness: seconds(
                "head_lateness",
                "For how long the task that would be claimed next has been due; 0 if none is.",
            )?,
            totals: [
                total("enqueued", "Enqueues that the queue has accepted.")?,
                total("acked", "Tasks that are done.")?,
                total("retried", "Failures that another try follows: nacks, and ends of leases.")?,
                total("died", "Tasks that went dead.")?,
            ],
            held: gauge("locks_held", "Locks that are held, offered or cooling down.", &["kind"])?,
            waiters: gauge("locks_waiters", "Those who wait for locks that are held.", &["kind"])?,
            registry,
        })
    }

    fn look_at_queue(&self, client: &Client, name: &str) -> Result<(), Failure> {
        let queue = client.queue(name);
        let stats = queue.stats()?;
        let states = [
            ("ready", stats.ready),
            ("scheduled", stats.scheduled),
            ("claimed", stats.claimed),
            ("held", stats.held),
            ("successor", stats.successors),
            ("dead", stats.dead),
        ];
        for (state, count) in states {
            self.tasks.with_label_values(&[name, state]).set(signed(count));
        }
        self.paused.with_label_values(&[name]).set(stats.paused.into());
        self.queue_waiters.with_label_values(&[name]).set(signed(stats.waiters));
        if let Some(next) = stats.next_due {
            self.next_due.with_label_values(&[name]).set(next.as_secs_f64());
        }
        self.schedules.with_label_values(&[name]).set(signed(stats.schedules));
        self.schedules_late.with_label_values(&[name]).set(stats.schedules_late.as_secs_f64());
        self.flows.with_label_values(&[name]).set(signed(stats.flows));
        let head = queue.peek(1)?.into_iter().next();
        let late = head.and_then(|head| SystemTime::now().duration_since(head.due).ok());
        self.lateness.with_label_values(&[name]).set(late.unwrap_or_default().as_secs_f64());
        let totals = [stats.enqueued, stats.acked, stats.retried, stats.died];
        for (counter, total) in self.totals.iter().zip(totals) {
            counter.with_label_values(&[name]).inc_by(total);
        }
        Ok(())
    }

    fn look_at_locks(&self, client: &Client, kind: LockKind) -> Result<(), Failure> {
        let (mut held, mut waiters) = (0, 0);
        for name in locks::names(client, kind)? {
            // One that was released since is left out.
            if let Some(holder) = locks::handle(client, kind, &name).holder()? {
                held += 1;
                waiters += signed(holder.waiters);
            }
        }
        self.held.with_label_values(&[kind.name()]).set(held);
        self.waiters.with_label_values(&[kind.name()]).set(waiters);
        Ok(())
    }
}

/// Each sample with its value.
fn as_json(text: &str) -> String {
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), Value::from(value.parse::<f64>().ok()?)))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    format!("{}\n", Value::from(lines.filter_map(sample).collect::<Map<_, _>>()))
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn internal(error: &prometheus::Error) -> Failure {
    Failure::system("making the metrics failed", &io::Error::other(error.to_string()))
}

/// A client's own metrics in a file, which is there as a whole or not at all.
pub struct MetricsFile<'a> {
    client: &'a Client,
    path: &'a Path,
    next: Instant,
}

impl<'a> MetricsFile<'a> {
    /// Writes it for the first time.
    pub fn begin(client: &'a Client, path: &'a Path) -> Result<Self, Failure> {
        let file = Self { client, path, next: Instant::now() + WRITE_EVERY };
        file.write()?;
        Ok(file)
    }

    /// Writes it again if it is time to.
    pub fn write_if_due(&mut self, report: &Report) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + WRITE_EVERY;
            if let Err(failure) = self.write() {
                report.failure(&failure);
            }
        }
    }

    /// Writes it anew.
    pub fn write(&self) -> Result<(), Failure> {
        let text = self.client.metrics_text()?;
        replace(self.path, text.as_bytes())
            .map_err(|error| Failure::system(&format!("writing {} failed", self.path.display()), &error))
    }
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file =
        tempfile::Builder::new().permissions(Permissions::from_mode(FILE_MODE)).tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
