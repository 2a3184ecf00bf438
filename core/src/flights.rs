//! Of the callers of one client that wait for the same cached value, one waits in the store's line. What it finds is
//! the answer to all of them; if it finds none, the next one goes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::clock::Moment;
use crate::name::LockName;
use crate::session::Live;
use crate::wake::{Place, locked};

/// Who waits for what, by the numbers of their places in the hub.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<Board>);

#[derive(Debug, Default)]
struct Board {
    /// For each name that somebody asks for: those who wait for the answer.
    waiting: HashMap<LockName, VecDeque<u64>>,
    told: HashMap<u64, Told>,
}

/// What one who waits is told.
#[derive(Debug)]
pub(crate) enum Told {
    Value(Arc<[u8]>),
    /// It is its turn to ask.
    Ask,
}

/// A caller's place among them, from when it came until it has its answer.
pub(crate) struct Seat<'a> {
    live: &'a Live,
    name: &'a LockName,
    pub(crate) place: Place,
    asks: bool,
}

impl<'a> Seat<'a> {
    pub(crate) fn take(live: &'a Live, name: &'a LockName) -> Self {
        let place = live.hub.enter();
        let mut board = locked(&live.flights.0);
        let asks = match board.waiting.get_mut(name) {
            Some(waiting) => {
                waiting.push_back(place.waiter().seq);
                false
            }
            None => {
                board.waiting.insert(name.clone(), VecDeque::new());
                true
            }
        };
        drop(board);
        Self { live, name, place, asks }
    }

    /// Whether it is this caller who asks the store.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// What it was told meanwhile.
    pub(crate) fn told(&mut self) -> Option<Told> {
        if self.live.is_inherited() {
            return None;
        }
        let told = locked(&self.live.flights.0).told.remove(&self.place.waiter().seq)?;
        self.asks = matches!(told, Told::Ask);
        Some(told)
    }

    /// Waits as a task until it is told something, or until then.
    pub(crate) async fn wait(&mut self, until: Moment) -> Option<Told> {
        let clock = &self.live.clock;
        while clock.now() < until {
            if tokio::time::timeout(clock.nap(until), self.place.hinted()).await.is_ok() {
                break;
            }
        }
        self.told()
    }

    /// The value is there: all who wait have it.
    pub(crate) fn answer(mut self, value: &[u8]) {
        if self.live.is_inherited() {
            return;
        }
        let mut board = locked(&self.live.flights.0);
        let waiting = board.waiting.remove(self.name).unwrap_or_default();
        let value: Arc<[u8]> = value.into();
        board.told.extend(waiting.iter().map(|seq| (*seq, Told::Value(Arc::clone(&value)))));
        drop(board);
        self.asks = false;
        waiting.into_iter().for_each(|seq| self.live.hub.deliver(seq));
    }
}

impl Drop for Seat<'_> {
    /// Whoever asked without finding a value leaves the turn to the next.
    fn drop(&mut self) {
        // In a forked child the mutex may have been inherited locked.
        if self.live.is_inherited() {
            return;
        }
        let seq = self.place.waiter().seq;
        let mut board = locked(&self.live.flights.0);
        let board = &mut *board;
        let had_turn = self.asks || matches!(board.told.remove(&seq), Some(Told::Ask));
        let Some(waiting) = board.waiting.get_mut(self.name) else { return };
        if !had_turn {
            return waiting.retain(|other| *other != seq);
        }
        match waiting.pop_front() {
            Some(next) => {
                board.told.insert(next, Told::Ask);
                self.live.hub.deliver(next);
            }
            None => drop(board.waiting.remove(self.name)),
        }
    }
}
