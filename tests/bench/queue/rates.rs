//! Rates: how much of what a queue or a key allows is delivered, while many workers wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stanchion::{ClaimOptions, Client, Queue, QueueConfig, Rate, Task};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::{fill_with, queue, task};
use crate::report::Report;

const WORKERS: [usize; 2] = [16, 64];
const LASTS: Duration = Duration::from_secs(5);
/// How many are allowed in a second, and at once.
const ALLOWED: u32 = 1_000;
const BURSTS: [u32; 2] = [1, 10];
/// More tasks than are delivered.
const TASKS: usize = 6_000;

/// `store` is what it is called.
pub fn rates(url: &str, store: &str, report: &mut Report) {
    report.section(&format!("{store}: deliveries per second to workers who wait, against the rate"));
    for burst in BURSTS {
        let rate = Some(Rate::new(ALLOWED, Duration::from_secs(1)).burst(burst));
        for workers in WORKERS {
            for (whose, config) in
                [("queue", QueueConfig::new().rate(rate)), ("key", QueueConfig::new().key_rate(rate))]
            {
                let name = format!("{whose}'s rate of {ALLOWED}, burst {burst}, {workers} workers");
                let full = queue(url, &format!("bench:{name}"));
                full.configure(config).unwrap();
                let of_key = |task: Task| if whose == "key" { task.key("tenant") } else { task };
                fill_with(&full, 0..TASKS, |number| of_key(task(number)));
                let delivered = deliveries(url, full.name(), workers) as f64 / LASTS.as_secs_f64();
                report.compare(&format!("{store} {name}"), delivered, f64::from(ALLOWED), "per s");
                full.purge().unwrap();
            }
        }
    }
}

/// How many tasks so many workers are given.
fn deliveries(url: &str, name: &str, workers: usize) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = Client::open(url).await.unwrap().queue(name);
        let counted = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut all = JoinSet::new();
        for _ in 0..workers {
            all.spawn(work(queue.clone(), begun, Arc::clone(&counted)));
        }
        while all.join_next().await.is_some() {}
        counted.load(Ordering::Relaxed)
    })
}

/// Claims a task at a time and settles it, as long as this lasts.
async fn work(queue: Queue, begun: Instant, counted: Arc<AtomicU64>) {
    while begun.elapsed() < LASTS {
        for claim in queue.claim(ClaimOptions::new().wait(LASTS)).await.unwrap() {
            if begun.elapsed() < LASTS {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            claim.ack().await.unwrap();
        }
    }
}
