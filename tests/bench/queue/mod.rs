//! The queue: how many tasks per second, how soon, at what size.

mod bare;
mod bytes;
mod crash;
mod latency;
mod schedules;
pub(crate) mod size;
mod speed;

pub use bytes::expired;
pub use crash::{CHILD, child, crash};
pub use latency::latency;
pub use schedules::schedules;
pub use size::{depth, memory};
pub use speed::{drain, lifecycle};

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
    for first in (0..count).step_by(10_000) {
        let results = queue.enqueue_many((first..count.min(first + 10_000)).map(task)).unwrap();
        assert!(results.iter().all(Result::is_ok));
    }
}
