//! What the demo prints, and what it checks.

use std::collections::BTreeMap;

use super::run::{Run, Said};
use super::worker::{LEASE, WORK};

pub fn opening(victim: &str, chosen: bool) {
    let store = match chosen {
        false => "embedded (SQLite), a fresh file in a temporary folder; no server",
        true => "that of STANCHION_URL",
    };
    println!(
        "\nA schedule: a task for every second, and two workers, in Rust and in {victim}. No other process is needed: whichever \
         worker asks\nfor a task also makes those that are due. The second worker is killed in the middle of a task.\n\
         Store of the queue: {store}.\n"
    );
}

/// Prints what happened; whether everything is as it must be.
pub fn result(run: &Run) -> bool {
    let mut ends: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    for said in run.said.iter().filter(|said| said.is_end) {
        ends.entry(&said.id).or_default().push(said);
    }
    let by_victim = ends.values().flatten().filter(|said| said.by_victim).count();
    println!("   the second worker was killed (SIGKILL) in the middle of the task {}", run.held);
    let back = ends.get(run.held.as_str()).and_then(|ends| ends.first()).filter(|end| !end.by_victim);
    match back {
        Some(end) => println!(
            "   the other worker did that task instead, {:.1} s after the kill (lease of the dead one: {} s, work: {} s)",
            (end.at - run.killed_at).as_secs_f64(),
            LEASE.as_secs(),
            WORK.as_secs_f64()
        ),
        None => println!("   NOBODY did that task"),
    }
    let twice = ends.values().filter(|ends| ends.len() > 1).count();
    println!(
        "   seconds that got a task: {}, from {} to {}; tasks done once: {}, twice: {twice}",
        run.fired,
        time(ends.keys().next()),
        time(ends.keys().next_back()),
        ends.len() - twice
    );
    println!(
        "   done by the first worker, in Rust: {}, by the killed one, in {}: {by_victim}",
        ends.len() - by_victim,
        run.victim
    );
    if run.left > 0 {
        println!("   {} tasks are LEFT in the queue", run.left);
    }
    let right = back.is_some() && twice == 0 && run.left == 0 && ends.len() as u64 == run.fired;
    match right {
        true => println!(
            "\nEach second got its task, which was done once, though a worker was killed in the middle of one."
        ),
        false => println!("\nThis was WRONG. Please report it, with what is printed above."),
    }
    right
}

/// Of the id of a slot's task.
fn time<'a>(id: Option<&&'a str>) -> &'a str {
    id.and_then(|id| id.split_once('@')).map_or("", |(_, time)| time)
}
