//! Single flight: of the callers of one client that want the same cached value, one asks the store; everyone who arrived
//! before the request was sent shares its result. If it finds no value, the next one asks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base::clock::Moment;
use crate::base::name::LockName;
use crate::base::wake::{Place, locked};
use crate::driver::rest_async;
use crate::session::Live;
use crate::store::WAITER_LIVE;

/// For so long one caller asks for all. Then the next one asks, too: the first may be a future that nobody polls.
const ASKS_ALONE: Duration = WAITER_LIVE;

/// The flights of one client.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<Board>);

/// Callers are known by the numbers of their places in the hub.
#[derive(Debug, Default)]
struct Board {
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

impl Board {
    fn join(&mut self, name: &LockName, seq: u64, came: Moment, now: Moment) {
        match self.flights.get_mut(name) {
            Some(flight) => flight.others.push_back((seq, came)),
            None => {
                let flight = Flight { asks: seq, since: now, others: VecDeque::new() };
                self.flights.insert(name.clone(), flight);
            }
        }
    }

    fn turn(&mut self, name: &LockName, seq: u64, now: Moment, give_up: Moment) -> Turn {
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
    fn answer(&mut self, name: &LockName, value: &[u8], asked: Moment) -> Vec<u64> {
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
    fn leave(&mut self, name: &LockName, seq: u64, now: Moment) -> Option<u64> {
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

/// A caller's place in a flight, from its arrival until it has its result.
pub(crate) struct Seat<'a> {
    live: &'a Live,
    name: &'a LockName,
    pub(crate) place: Place,
}

impl<'a> Seat<'a> {
    /// For a caller that arrived at this moment.
    pub(crate) fn take(live: &'a Live, name: &'a LockName, came: Moment) -> Self {
        let place = live.hub.enter();
        locked(&live.flights.0).join(name, place.waiter().seq, came, live.clock.now());
        Self { live, name, place }
    }

    /// What this caller does now. It asks the store in any case when its time is up.
    pub(crate) fn turn(&self, give_up: Moment) -> Turn {
        // In a forked child the mutex may have been inherited locked; there the call to the store fails with `Forked`.
        if self.live.is_inherited() {
            return Turn::Ask;
        }
        let seq = self.place.waiter().seq;
        locked(&self.live.flights.0).turn(self.name, seq, self.live.clock.now(), give_up)
    }

    /// Waits as a task until it is woken, or until then.
    pub(crate) async fn wait(&self, until: Moment) {
        rest_async(self.live, &self.place, until).await;
    }

    /// Shares the value that a request sent at this moment has found.
    pub(crate) fn answer(&self, value: &[u8], asked: Moment) {
        if self.live.is_inherited() {
            return;
        }
        let woken = locked(&self.live.flights.0).answer(self.name, value, asked);
        woken.into_iter().for_each(|seq| self.live.hub.deliver(seq));
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if self.live.is_inherited() {
            return;
        }
        let now = self.live.clock.now();
        let next = locked(&self.live.flights.0).leave(self.name, self.place.waiter().seq, now);
        if let Some(next) = next {
            self.live.hub.deliver(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::internals::name_of_kind;
    use crate::base::name::LockKind;

    const FAR: Moment = Moment::FAR;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_millis(millis)
    }

    fn value() -> Turn {
        Turn::Value(Arc::from(&b"v"[..]))
    }

    /// So many callers, each of whom came a millisecond after the one before; the first asks.
    fn board(callers: u64) -> (Board, LockName) {
        let name = name_of_kind(LockKind::Cached, "a").unwrap();
        let mut board = Board::default();
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
