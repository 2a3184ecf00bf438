//! What became of the tasks, counted and told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use stanchion::blocking::Queue;
use stanchion::{Error, QueueStats, WorkerEvent};

use crate::report::Report;

/// How often it is looked how many tasks are left.
const LOOK_LEFT: Duration = Duration::from_secs(1);

/// Counts of all queues together.
pub struct Tally {
    completed: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
    lost: AtomicU64,
    /// By queue, as it was at the last look.
    left: Vec<AtomicU64>,
}

impl Tally {
    /// For so many queues.
    pub fn new(queues: usize) -> Self {
        let zero = AtomicU64::default;
        let left = std::iter::repeat_with(zero).take(queues).collect();
        Self { completed: zero(), failed: zero(), dead: zero(), lost: zero(), left }
    }

    /// Counts an event of a queue, and tells of one that somebody may have to do something about.
    pub fn event(&self, queue: &str, event: WorkerEvent<'_>, report: &Report) {
        let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        match event {
            WorkerEvent::Completed { .. } => drop(add(&self.completed)),
            WorkerEvent::Failed { id, attempt, reason } => {
                add(&self.failed);
                report.note(&format!("task {id:?}, attempt {attempt}: {reason}"));
            }
            WorkerEvent::Dead { id, .. } => {
                add(&self.dead);
                report.note(&format!(
                    "task {id:?} is dead; `stanchion queues kick {queue:?} {id:?}` gives it another chance"
                ));
            }
            WorkerEvent::Lost { id, attempt } => {
                add(&self.lost);
                report.note(&format!(
                    "task {id:?}, attempt {attempt}: the claim was lost; unless the store has forgotten it, it is delivered again"
                ));
            }
            WorkerEvent::Stuck { id, .. } => {
                report.note(&format!("task {id:?}: its command was asked to end, and is still running"));
            }
            WorkerEvent::SlotsMissed { schedule, missed, fired, .. } => report.note(&format!(
                "schedule {schedule:?}: nobody worked on the queue: {missed} slots were missed, {fired} fired late"
            )),
            WorkerEvent::StoreFailed { error } => report.note(&format!("{error}; trying again")),
            WorkerEvent::StoreBack { after } => {
                report.note(&format!("the store answers again, after {:.1} s", after.as_secs_f64()));
            }
            _ => {}
        }
        self.show(report);
    }

    /// Looks now and then how many tasks a queue has left, if somebody sees it.
    pub fn watch_left(&self, place: usize, queue: Queue, wanted: bool) -> impl FnMut(&Report) {
        let mut last: Option<Instant> = None;
        move |report| {
            if !wanted || last.is_some_and(|last| last.elapsed() < LOOK_LEFT) {
                return;
            }
            last = Some(Instant::now());
            if let (Ok(stats), Some(left)) = (queue.stats(), self.left.get(place)) {
                left.store(live(&stats), Ordering::Relaxed);
                self.show(report);
            }
        }
    }

    fn show(&self, report: &Report) {
        if report.has_counter() {
            let left = self.left.iter().map(|left| left.load(Ordering::Relaxed)).sum();
            report.count(self.in_words(Some(left)));
        }
    }

    /// Tells everything at the end.
    pub fn summary(&self, queues: &[Queue], report: &Report) {
        let left = queues.iter().map(|queue| Ok(live(&queue.stats()?))).sum::<Result<u64, Error>>().ok();
        let [completed, failed, dead, lost] = self.counts();
        let fields =
            json!({ "completed": completed, "failed": failed, "dead": dead, "lost": lost, "left": left });
        report.summary(&self.in_words(left), &fields);
    }

    fn in_words(&self, left: Option<u64>) -> String {
        let [completed, failed, dead, lost] = self.counts();
        let mut text = format!("{completed} completed, {failed} failed");
        for (count, word) in [(dead, "dead"), (lost, "lost")] {
            if count > 0 {
                text.push_str(&format!(", {count} {word}"));
            }
        }
        left.map_or(text.clone(), |left| format!("{text}, {left} left"))
    }

    fn counts(&self) -> [u64; 4] {
        [&self.completed, &self.failed, &self.dead, &self.lost].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Tasks that are not dead.
fn live(stats: &QueueStats) -> u64 {
    stats.scheduled + stats.ready + stats.claimed + stats.held + stats.successors
}
