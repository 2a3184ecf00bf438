//! Says that a worker waits because its queue is paused: one that does nothing should not be a riddle.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use stanchion::blocking::Queue;

use crate::report::Report;

/// How often it is looked: a person who has just paused a queue, or resumed it, may well wait for so long, and a fleet
/// of workers asks the store seldom.
const LOOK: Duration = Duration::from_secs(5);

/// The queues of a worker, and which of them are paused.
pub struct Pauses<'a> {
    queues: Vec<(&'a Queue, bool)>,
    report: &'a Report,
}

impl<'a> Pauses<'a> {
    /// Tells which are paused now.
    pub fn tell(queues: &'a [Queue], report: &'a Report) -> Self {
        let mut pauses = Self { queues: queues.iter().map(|queue| (queue, false)).collect(), report };
        pauses.look();
        pauses
    }

    /// Tells of every change, until the other end of the channel is gone.
    pub fn watch(mut self, end: &Receiver<()>) {
        while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            self.look();
        }
    }

    fn look(&mut self) {
        for (queue, was_paused) in &mut self.queues {
            // The worker tells of a store that does not answer.
            let Ok(stats) = queue.stats() else { continue };
            let name = queue.name();
            match (stats.paused, *was_paused) {
                (true, false) => self.report.note(&format!(
                    "queue {name:?} is paused: its tasks wait; `stanchion queues resume {name:?}` lets them go on"
                )),
                (false, true) => self.report.note(&format!("queue {name:?} is not paused any more")),
                _ => {}
            }
            *was_paused = stats.paused;
        }
    }
}
