//! Tasks per second: one at a time, in batches, and as a busy worker drains a queue.

use std::time::{Duration, Instant};

use stanchion::ClaimOptions;
use stanchion::blocking::{Claim, Queue};

use super::bare::BareQueue;
use super::{BATCH, PAYLOAD, fill, id, queue, task};
use crate::report::{Report, percentile};

/// Turns of each side; the sides alternate.
const TURNS: usize = 40;
/// Tasks in one turn, one at a time.
const SINGLES: usize = 50;
/// Batches in one turn.
const BATCHES: usize = 5;
/// Tasks that are drained.
const DRAINED: usize = 100_000;

/// Enqueue, claim, ack. `bare` is the store of the baseline, if there is one.
pub fn lifecycle(url: &str, bare: Option<&str>, store: &str, report: &mut Report) {
    report.section(&format!("{store}: a task's life (enqueue, claim, ack), 100-byte payload"));
    let queue = queue(url, "bench:life");
    let mut bare = bare.map(|url| BareQueue::new(url, "life"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        for number in 0..SINGLES {
            let started = Instant::now();
            queue.enqueue(task(number)).unwrap();
            let claims = queue.claim(ClaimOptions::new()).unwrap();
            claims[0].ack().unwrap();
            ours.push(started.elapsed());
        }
        let Some(bare) = &mut bare else { continue };
        for number in 0..SINGLES {
            let started = Instant::now();
            bare.enqueue(&[id(number)], &PAYLOAD);
            let ids = bare.claim(1);
            bare.ack(&ids);
            theirs.push(started.elapsed());
        }
    }
    let rate = |samples: &mut [Duration]| 1.0 / percentile(samples, 0.5).as_secs_f64();
    let baseline = (!theirs.is_empty()).then(|| rate(&mut theirs));
    add(report, &format!("{store} lifecycle, one at a time"), rate(&mut ours), baseline);
    batches(&queue, bare, store, report);
}

fn batches(queue: &Queue, mut bare: Option<BareQueue>, store: &str, report: &mut Report) {
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        let started = Instant::now();
        for _ in 0..BATCHES {
            queue.enqueue_many((0..BATCH).map(task)).unwrap();
            let claims = queue.claim(ClaimOptions::new().max(BATCH)).unwrap();
            assert_eq!(claims.len(), BATCH);
            let settled = queue.settle(claims.iter().map(Claim::acked).collect()).unwrap();
            assert!(settled.iter().all(Result::is_ok));
        }
        ours += started.elapsed();
        let Some(bare) = &mut bare else { continue };
        let ids: Vec<String> = (0..BATCH).map(id).collect();
        let started = Instant::now();
        for _ in 0..BATCHES {
            bare.enqueue(&ids, &PAYLOAD);
            let claimed = bare.claim(BATCH);
            bare.ack(&claimed);
        }
        theirs += started.elapsed();
    }
    let rate = |time: Duration| (TURNS * BATCHES * BATCH) as f64 / time.as_secs_f64();
    let baseline = bare.map(|_| rate(theirs));
    add(report, &format!("{store} lifecycle, batches of {BATCH}"), rate(ours), baseline);
}

/// A full queue, drained with settle_and_claim in batches by one process.
pub fn drain(url: &str, bare: Option<&str>, store: &str, report: &mut Report) {
    report.section(&format!("{store}: {DRAINED} tasks put in, and drained by one worker"));
    let queue = queue(url, "bench:drain");
    let mut bare = bare.map(|url| BareQueue::new(url, "drain"));
    let started = Instant::now();
    fill(&queue, DRAINED);
    let ours = started.elapsed();
    let theirs = bare.as_mut().map(|bare| {
        let started = Instant::now();
        for first in (0..DRAINED).step_by(1_000) {
            bare.enqueue(&(first..first + 1_000).map(id).collect::<Vec<_>>(), &PAYLOAD);
        }
        started.elapsed()
    });
    let rate = |time: Duration| DRAINED as f64 / time.as_secs_f64();
    add(report, &format!("{store} enqueue_many"), rate(ours), theirs.map(rate));

    let started = Instant::now();
    let mut claims = queue.claim(ClaimOptions::new().max(BATCH)).unwrap();
    let mut done = 0;
    while !claims.is_empty() {
        done += claims.len();
        let verdicts = claims.iter().map(Claim::acked).collect();
        let settled;
        (settled, claims) = queue.settle_and_claim(verdicts, ClaimOptions::new().max(BATCH)).unwrap();
        assert!(settled.iter().all(Result::is_ok));
    }
    let ours = started.elapsed();
    assert_eq!(done, DRAINED);
    let theirs = bare.as_mut().map(|bare| {
        let started = Instant::now();
        let mut ids = bare.claim(BATCH);
        while !ids.is_empty() {
            bare.ack(&ids);
            ids = bare.claim(BATCH);
        }
        started.elapsed()
    });
    add(report, &format!("{store} drain, settle_and_claim by {BATCH}"), rate(ours), theirs.map(rate));
}

fn add(report: &mut Report, name: &str, ours: f64, baseline: Option<f64>) {
    match baseline {
        Some(baseline) => report.compare(name, ours, baseline, "tasks/s"),
        None => report.note(name, ours, "tasks/s"),
    }
}
