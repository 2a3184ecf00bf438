//! What the demo prints, and what it checks.

use std::time::Instant;

use stanchion::{Cancelled, LossReason, Outcome as Enqueued, TaskResult};

use super::prices::Price;
use super::run::{MISTAKE, RIGHT, Run, Story};
use super::worker::LEASE;

/// What the queue says to a run that is not the task's any more.
const STALE: &str = "stale";

pub fn opening(late: &str, prompt: &str, chosen: bool) {
    let store = match chosen {
        false => "embedded (SQLite), a fresh file in a temporary folder; no server",
        true => "that of STANCHION_URL",
    };
    println!(
        "\nA task that is cancelled while it runs: it was to set the price of a chair to {MISTAKE} euros, by mistake. The same task is \
         enqueued anew, with {RIGHT}.\nThe first run, in {late}, is told that it was cancelled. It ignores that, and writes its \
         price all the same, after the second\nrun, in {prompt}, has written. Each run of a task has a number, its fence, larger \
         than that of every run before it. It is written\ninto the table of prices along with the price, and a smaller one changes \
         nothing there:\n\n\
         \x20  UPDATE price SET euros = ?, fence = ? WHERE item = ? AND fence <= ?\n\n\
         Store of the queue: {store}.\n"
    );
}

/// Prints each step when it has happened.
pub struct Log {
    begun: Instant,
    runs: [String; 2],
}

impl Log {
    pub fn new(first: &str, second: &str) -> Self {
        let run = |number: usize, language: &str| format!("run {number} ({language})");
        Self { begun: Instant::now(), runs: [run(1, first), run(2, second)] }
    }

    fn line(&self, who: &str, what: &str) {
        println!("   {:>4.1} s   {who:<16}{what}", self.begun.elapsed().as_secs_f64());
    }

    fn run(&self, number: usize, what: &str) {
        self.line(&self.runs[number - 1], what);
    }

    pub fn begins(&self, number: usize, fence: i64) {
        self.run(number, &format!("begins, with the fence {fence}"));
    }

    pub fn cancelled(&self, cancelled: Cancelled) {
        let answer = match cancelled {
            Cancelled::Running => "it runs, and will be told",
            other => &format!("NOT that it runs, but {other:?}"),
        };
        self.line("the demo", &format!("cancels the task; the queue answers: {answer}"));
    }

    pub fn enqueued(&self, enqueued: Enqueued) {
        let answer = match enqueued {
            Enqueued::Successor => "it comes when run 1 has ended",
            other => other.name(),
        };
        self.line(
            "the demo",
            &format!("enqueues the task anew, with {RIGHT} euros; the queue answers: {answer}"),
        );
    }

    pub fn told(&self, reason: &str) {
        self.run(1, &format!("is told that it must not go on; reason: {reason}. It goes on"));
        let lease = LEASE.as_secs();
        self.line(
            "",
            &format!("(its lease of {lease} s is not renewed any more; run 2 may begin when it ends)"),
        );
    }

    pub fn wrote(&self, number: usize, euros: i64, run: &Run) {
        let what = match run.rows {
            0 => "REFUSED by the table, no row was changed".into(),
            rows => format!("accepted by the table, {rows} row changed"),
        };
        self.run(number, &format!("writes {euros} euros with the fence {}: {what}", run.fence));
        let what = match run.ack.as_str() {
            STALE => "REFUSED, the task is another run's by now".into(),
            answer => answer.to_owned(),
        };
        self.run(number, &format!("says to the queue that the task is done: {what}"));
    }
}

pub fn stood_still() {
    println!(
        "\n   This machine stood still for longer than the lease, so run 1 lost its task before it could be told of the \
         cancel. Once more:\n"
    );
}

/// Prints how it ended; whether everything is as it must be.
pub fn result(story: &Story) -> bool {
    let Price { euros, fence } = story.price;
    println!("\n   price of the chair in the end: {euros} euros, with the fence {fence}");
    let checks = [
        (story.cancelled == Cancelled::Running, "the cancel did not find the run"),
        (story.enqueued == Enqueued::Successor, "the new task does not come after the cancelled run"),
        (story.told == LossReason::Cancelled.name(), "the cancelled run was not told that it was cancelled"),
        (story.first.fence < story.second.fence, "the second run's fence is not larger"),
        (story.second.rows == 1 && story.second.ack == "accepted", "the second run was refused"),
        (is_done(&story.result), "the task enqueued anew is not done by the second run"),
        (story.first.rows == 0, "the late write was accepted"),
        (story.first.ack == STALE, "the queue did not refuse the cancelled run"),
        (story.price == Price { euros: RIGHT, fence: story.second.fence }, "the price is wrong"),
    ];
    let wrong: Vec<&str> = checks.iter().filter(|(right, _)| !right).map(|(_, what)| *what).collect();
    for what in &wrong {
        println!("   WRONG: {what}");
    }
    match wrong.is_empty() {
        true => println!("\nThe cancelled run was told, and what it wrote too late was refused."),
        false => println!("\nThis was WRONG. Please report it, with what is printed above."),
    }
    wrong.is_empty()
}

/// Whether the second run's result is the task's.
fn is_done(result: &TaskResult) -> bool {
    matches!(result, TaskResult::Done { result, .. } if *result == RIGHT.to_string().into_bytes())
}
