//! The queue: how many tasks per second, how soon, at what size.

mod bare;
mod bytes;
mod crash;
mod flows;
mod keys;
mod latency;
mod rates;
mod results;
mod schedules;
pub(crate) mod size;
mod speed;

pub use bytes::expired;
pub use crash::{CHILD, child, crash};
pub use flows::flows;
pub use keys::{keys, keys_memory};
pub use latency::latency;
pub use rates::rates;
pub use results::{WAITER, results, waiter};
pub use schedules::schedules;
pub use size::{depth, memory};
pub use speed::{drain, lifecycle};

use std::ops::Range;

use stanchion::Task;
use stanchion::blocking::{Client, Queue};

/// Bytes of a task's payload.
const PAYLOAD: [u8; 100] = [b'x'; 100];
/// Tasks in one request.
const BATCH: usize = 100;

/// An empty queue of this store.
fn queue(url: &str, name: &str) -> Queue {
    let queue = Client::open(url).unwrap().queue(name);
    queue.purge().unwrap();
    queue
}

fn task(number: usize) -> Task {
    Task::new(id(number)).payload(PAYLOAD)
}

fn id(number: usize) -> String {
    format!("task:{number:06}")
}

/// Puts so many tasks in, and makes sure that all were taken.
fn fill(queue: &Queue, count: usize) {
    fill_with(queue, 0..count, task);
}

/// The same with these numbers, and tasks of the caller's.
fn fill_with(queue: &Queue, numbers: Range<usize>, task: impl Fn(usize) -> Task) {
    for first in numbers.clone().step_by(10_000) {
        let results = queue.enqueue_many((first..numbers.end.min(first + 10_000)).map(&task)).unwrap();
        assert!(results.iter().all(Result::is_ok));
    }
}
