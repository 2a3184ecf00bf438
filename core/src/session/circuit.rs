//! A circuit breaker: a store that did not answer a moment ago is not asked by calls that can do without it.

use std::sync::Mutex;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::wake::locked;

/// For how long it stays open. Without it each of those calls would wait for a second.
const OPEN_FOR: Duration = Duration::from_secs(5);

/// Until when it is open.
#[derive(Debug, Default)]
pub(crate) struct Circuit(Mutex<Option<Moment>>);

impl Circuit {
    /// Whether the store should not be asked now.
    pub(crate) fn is_open(&self, now: Moment) -> bool {
        locked(&self.0).is_some_and(|until| now < until)
    }

    /// The store did not answer. A circuit that is open already is not kept open for longer.
    pub(crate) fn open(&self, now: Moment) {
        let mut until = locked(&self.0);
        if until.is_none_or(|until| until <= now) {
            *until = Some(now + OPEN_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_open_for_a_time_that_further_failures_do_not_prolong() {
        let (circuit, now) = (Circuit::default(), Moment::from_nanos(0) + OPEN_FOR);
        let a_second = Duration::from_secs(1);
        assert!(!circuit.is_open(now));
        circuit.open(now);
        circuit.open(now + a_second);
        assert!(circuit.is_open(now + OPEN_FOR - a_second));
        assert!(!circuit.is_open(now + OPEN_FOR));
        circuit.open(now + OPEN_FOR);
        assert!(circuit.is_open(now + OPEN_FOR + a_second));
    }
}
