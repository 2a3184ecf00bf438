//! Flows: what a child costs beside a plain task, from putting it in to its ack.

use std::time::{Duration, Instant};

use stanchion::blocking::{Claim, Queue};
use stanchion::{ClaimOptions, Flow, FlowState, NodeState, Task};

use super::{BATCH, PAYLOAD, queue, task};
use crate::report::{Report, percentile};

/// Children of a flow; as many plain tasks are beside it.
const CHILDREN: usize = 1_000;
const ROUNDS: usize = 9;
/// Bytes of a large payload: a thousand come to what the bodies of a flow may be in all.
const LARGE: usize = 60_000;

/// `store` is what it is called.
pub fn flows(url: &str, store: &str, report: &mut Report) {
    report
        .section(&format!("{store}: a flow of {CHILDREN} children and one after them, against plain tasks"));
    let ways = [
        ("one at a time", PAYLOAD.len(), one_by_one as fn(&Queue)),
        ("batches of 100", PAYLOAD.len(), in_batches),
        ("batches of 100, 60 KB each", LARGE, in_batches),
    ];
    for (how, size, work) in ways {
        let (flows, plain) = (queue(url, "bench:flows"), queue(url, "bench:plain"));
        let mut samples: [Vec<Duration>; 2] = Default::default();
        for round in 0..ROUNDS {
            samples[0].push(flow(&flows, &format!("flow:{size}:{round}"), size, work));
            samples[1].push(tasks(&plain, size, work));
        }
        let each = |mut side: Vec<Duration>| percentile(&mut side, 0.5).as_secs_f64() * 1e6 / CHILDREN as f64;
        let [ours, theirs] = samples.map(each);
        report.compare(&format!("{store} child, {how}, p50"), ours, theirs, "us");
    }
}

fn flow(queue: &Queue, id: &str, size: usize, work: fn(&Queue)) -> Duration {
    let flow = Flow::batch(id, (0..CHILDREN).map(|number| sized(number, size))).then(Task::new("then"));
    let started = Instant::now();
    assert!(queue.enqueue_flow(flow).unwrap());
    work(queue);
    let took = started.elapsed();
    let ended = queue.get_flow(id).unwrap().unwrap();
    assert_eq!((ended.state, ended.count(NodeState::Done)), (FlowState::Done, CHILDREN as u32 + 1));
    took
}

fn sized(number: usize, size: usize) -> Task {
    task(number).payload(vec![b'x'; size])
}

fn tasks(queue: &Queue, size: usize, work: fn(&Queue)) -> Duration {
    let tasks: Vec<Task> = (0..=CHILDREN).map(|number| sized(number, size)).collect();
    let started = Instant::now();
    assert!(queue.enqueue_many(tasks).unwrap().iter().all(Result::is_ok));
    work(queue);
    started.elapsed()
}

/// Until nothing is left.
fn one_by_one(queue: &Queue) {
    loop {
        let claims = queue.claim(ClaimOptions::new()).unwrap();
        let Some(claim) = claims.first() else { return };
        claim.ack().unwrap();
    }
}

fn in_batches(queue: &Queue) {
    let options = || ClaimOptions::new().max(BATCH);
    let mut claims = queue.claim(options()).unwrap();
    while !claims.is_empty() {
        let verdicts = claims.iter().map(Claim::acked).collect();
        (_, claims) = queue.settle_and_claim(verdicts, options()).unwrap();
    }
}
