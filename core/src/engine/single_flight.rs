//! Single flight: of the callers of one client that wait for the same cached value, one asks the store. Everyone who
//! came before its request was sent shares the result; if there is none, the next one asks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::name::LockName;
use crate::protocol::WAITER_LIVE;

/// For so long one caller asks for all. Then the next one asks, too: the first may be a future that nobody polls.
const ASKS_ALONE: Duration = WAITER_LIVE;

/// Who waits for what. Callers are known by the numbers of their places in the hub.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    /// By the name that a caller asks for.
    flights: HashMap<LockName, Flight>,
    /// Shared results that their callers have not read yet.
    answers: HashMap<u64, Arc<[u8]>>,
}

#[derive(Debug)]
struct Flight {
    /// The caller that asks the store, and since when.
    asks: u64,
    since: Moment,
    /// The others, and when each of them arrived.
    others: VecDeque<(u64, Moment)>,
}

/// What a caller does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Return this value.
    Value(Arc<[u8]>),
    /// Ask the store.
    Ask,
    /// Wait until it is woken, or until then.
    Wait(Moment),
}

impl SingleFlight {
    pub(crate) fn join(&mut self, name: &LockName, seq: u64, came: Moment, now: Moment) {
        match self.flights.get_mut(name) {
            Some(flight) => flight.others.push_back((seq, came)),
            None => {
                let flight = Flight { asks: seq, since: now, others: VecDeque::new() };
                self.flights.insert(name.clone(), flight);
            }
        }
    }

    pub(crate) fn turn(&mut self, name: &LockName, seq: u64, now: Moment, give_up: Moment) -> Turn {
        if let Some(value) = self.answers.remove(&seq) {
            return Turn::Value(value);
        }
        let Some(flight) = self.flights.get_mut(name) else { return Turn::Ask };
        let turn_at = flight.since + ASKS_ALONE;
        if flight.asks != seq && now < turn_at.min(give_up) {
            return Turn::Wait(turn_at.min(give_up));
        }
        if flight.asks != seq && now >= turn_at {
            flight.others.retain(|(other, _)| *other != seq);
            (flight.asks, flight.since) = (seq, now);
        }
        Turn::Ask
    }

    /// Shares the result of a request that was sent at `asked` with the callers that arrived before, and returns them, to be
    /// woken. One that arrived later may have invalidated that value.
    pub(crate) fn answer(&mut self, name: &LockName, value: &[u8], asked: Moment) -> Vec<u64> {
        let Some(flight) = self.flights.get_mut(name) else { return Vec::new() };
        let value: Arc<[u8]> = value.into();
        let mut woken = Vec::new();
        flight.others.retain(|(seq, came)| {
            let answered = *came <= asked;
            if answered {
                woken.push(*seq);
            }
            !answered
        });
        self.answers.extend(woken.iter().map(|seq| (*seq, Arc::clone(&value))));
        woken
    }

    /// Removes a caller. If it was the one that asks, the next one takes over, and is returned, to be woken.
    pub(crate) fn leave(&mut self, name: &LockName, seq: u64, now: Moment) -> Option<u64> {
        self.answers.remove(&seq);
        let flight = self.flights.get_mut(name)?;
        if flight.asks != seq {
            flight.others.retain(|(other, _)| *other != seq);
            return None;
        }
        let next = flight.others.pop_front().map(|(next, _)| next);
        match next {
            Some(next) => (flight.asks, flight.since) = (next, now),
            None => drop(self.flights.remove(name)),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::{LockKind, Prefixes};

    const FAR: Moment = Moment::FAR;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn value() -> Turn {
        Turn::Value(Arc::from(&b"v"[..]))
    }

    /// So many callers, each of whom came a millisecond after the one before; the first asks.
    fn board(callers: u64) -> (SingleFlight, LockName) {
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().name_of_kind(LockKind::Cached, "a").unwrap();
        let mut board = SingleFlight::default();
        (0..callers).for_each(|seq| board.join(&name, seq, at(seq), at(seq)));
        (board, name)
    }

    #[test]
    fn an_answer_is_for_those_who_came_before_it_was_asked_for() {
        let (mut board, name) = board(4);
        assert_eq!(board.turn(&name, 0, at(4), FAR), Turn::Ask);
        assert_eq!(board.answer(&name, b"v", at(2)), [1, 2]);
        assert_eq!(board.turn(&name, 1, at(5), FAR), value());
        assert_eq!(board.turn(&name, 2, at(5), FAR), value());
        assert!(matches!(board.turn(&name, 3, at(5), FAR), Turn::Wait(_)));
        assert_eq!(board.leave(&name, 0, at(5)), Some(3));
        assert_eq!(board.turn(&name, 3, at(5), FAR), Turn::Ask);
        assert_eq!(board.leave(&name, 3, at(5)), None);
        assert!(board.flights.is_empty());
    }

    #[test]
    fn whoever_leaves_is_neither_answered_nor_given_the_turn() {
        let (mut board, name) = board(3);
        assert_eq!(board.leave(&name, 1, at(4)), None);
        assert_eq!(board.answer(&name, b"v", at(4)), [2]);
        assert_eq!(board.leave(&name, 2, at(4)), None);
        assert!(board.answers.is_empty(), "an answer that nobody reads is not kept");
        assert_eq!(board.leave(&name, 0, at(4)), None);
        assert!(board.flights.is_empty());
    }

    #[test]
    fn the_turn_of_one_who_is_silent_is_taken_once_each_time() {
        let (mut board, name) = board(3);
        let first = at(0) + ASKS_ALONE;
        assert_eq!(board.turn(&name, 1, at(10), FAR), Turn::Wait(first));
        assert_eq!(board.turn(&name, 2, first, FAR), Turn::Ask);
        assert_eq!(board.turn(&name, 1, first, FAR), Turn::Wait(first + ASKS_ALONE));
        // The silent one asks, too: what it finds is an answer, and its leaving gives nobody the turn.
        assert_eq!(board.leave(&name, 0, first), None);
        assert_eq!(board.answer(&name, b"v", first), [1]);
        assert_eq!(board.leave(&name, 2, first), None);
        assert!(board.flights.is_empty());
    }

    #[test]
    fn whose_time_is_up_asks_without_taking_the_turn() {
        let (mut board, name) = board(2);
        assert_eq!(board.turn(&name, 1, at(10), at(50)), Turn::Wait(at(50)));
        assert_eq!(board.turn(&name, 1, at(50), at(50)), Turn::Ask);
        assert_eq!(board.leave(&name, 1, at(51)), None);
        assert_eq!(board.flights[&name].asks, 0);
    }
}
