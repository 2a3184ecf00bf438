//! What every simulated fleet stands on: virtual time, chance, processes, and a network between them and the
//! store.

mod chance;
mod network;
mod process;
mod stores;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use stanchion::ManualClock;
use stanchion::engine::NAP_MOST;
use stanchion::internals::{Clock, Moment};
use stanchion::protocol::{Failure, Reply, Request};

pub use network::Weather;
pub use process::{Process, Route};
pub use stores::Stores;

/// A schedule that goes on for longer does not come to an end.
const MOST_EVENTS: u32 = 20_000;

/// Why a schedule failed, or what came of it.
pub type Played<T = ()> = Result<T, String>;

#[derive(Debug)]
pub enum Event {
    /// A request reaches the store.
    Arrive { client: usize, life: u32, route: Route, number: u32, request: Box<Request> },
    /// A reply reaches its client.
    Deliver { client: usize, life: u32, route: Route, number: u32, result: Result<Reply, Failure> },
    /// A hint reaches its client.
    Hint { client: usize, life: u32, op: u64 },
    /// A timer of a client runs out.
    Wake { client: usize, life: u32 },
    /// A client thinks about what to do next.
    Act { client: usize, life: u32 },
    /// A client's user does not wait any longer.
    Cancel { client: usize },
    /// A client stands still for a while.
    Freeze { client: usize, time: Duration },
    /// A client dies, and another process takes its place.
    Kill { client: usize },
    /// A client's machine sleeps for a while: the clock goes on, and timers do not.
    Suspend { client: usize, time: Duration },
    /// Something happens to the store.
    Store(Trouble),
}

/// What happens to a store.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// A lease ends before its time.
    EndsEarly,
    /// From now on, what it does is not copied to its replica.
    FallsBehind,
    /// The replica takes its place.
    FailsOver,
}

impl Event {
    /// In which client it happens, and in which of its lives, if that matters.
    fn place(&self) -> (usize, Option<u32>) {
        match self {
            Self::Deliver { client, life, .. }
            | Self::Hint { client, life, .. }
            | Self::Wake { client, life }
            | Self::Act { client, life } => (*client, Some(*life)),
            Self::Arrive { client, .. }
            | Self::Cancel { client }
            | Self::Freeze { client, .. }
            | Self::Suspend { client, .. }
            | Self::Kill { client } => (*client, None),
            Self::Store(_) => (0, None),
        }
    }

    /// Whether a client that is frozen comes to it only later.
    fn waits_for_thaw(&self) -> bool {
        !matches!(
            self,
            Self::Arrive { .. }
                | Self::Freeze { .. }
                | Self::Suspend { .. }
                | Self::Kill { .. }
                | Self::Store(_)
        )
    }
}

struct Scheduled {
    at: Moment,
    /// When it was planned.
    planned: Moment,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// See the module's documentation.
pub struct Scene {
    clock: ManualClock,
    pub now: Moment,
    pub rng: fastrand::Rng,
    pub weather: Weather,
    /// Nothing goes wrong any more.
    pub calm: bool,
    /// How long a sleeper sleeps at most before it looks at the clock.
    pub longest_nap: Duration,
    pub processes: Vec<Process>,
    /// Messages that never came, and those that came twice.
    pub lost: u64,
    pub doubled: u64,
    events: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
    handled: u32,
    loud: bool,
}

impl Scene {
    /// A scene without processes, in the weather that the seed decides.
    pub fn new(clock: &ManualClock, seed: u64, loud: bool) -> Self {
        // Every schedule begins at a whole second, so that a seed repeats on another store.
        let past = Clock::Manual(clock.clone()).now().as_micros() % 1_000_000;
        clock.advance(Duration::from_micros((1_000_000 - past) % 1_000_000));
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5742_11AA);
        Self {
            clock: clock.clone(),
            now: Clock::Manual(clock.clone()).now(),
            weather: Weather::draw(&mut rng),
            rng,
            calm: false,
            longest_nap: NAP_MOST,
            processes: Vec::new(),
            lost: 0,
            doubled: 0,
            events: BinaryHeap::new(),
            order: 0,
            handled: 0,
            loud,
        }
    }

    pub fn schedule(&mut self, after: Duration, event: Event) {
        self.order += 1;
        let (at, planned) = (self.now + after, self.now);
        self.events.push(Reverse(Scheduled { at, planned, order: self.order, event }));
    }

    pub fn act_after(&mut self, client: usize, pause: Duration) {
        let life = self.processes[client].life;
        self.schedule(pause, Event::Act { client, life });
    }

    pub fn wake_at(&mut self, client: usize, at: Moment) {
        let process = &mut self.processes[client];
        // Once is enough: each wake looks after everything.
        if at != Moment::FAR && process.wakes.insert(at.max(self.now)) {
            let life = process.life;
            self.schedule(at.since(self.now), Event::Wake { client, life });
        }
    }

    pub fn advance(&mut self, to: Moment) {
        self.clock.advance(to.since(self.now));
        self.now = self.now.max(to);
    }

    /// The next event that concerns the fleet; `None` if nothing happens any more.
    pub fn next(&mut self) -> Played<Option<Event>> {
        while let Some(Reverse(Scheduled { at, planned, event, .. })) = self.events.pop() {
            self.handled += 1;
            if self.handled > MOST_EVENTS {
                return Err("the schedule does not come to an end".into());
            }
            self.advance(at);
            let (client, life) = event.place();
            let process = &mut self.processes[client];
            if matches!(event, Event::Wake { .. }) && life == Some(process.life) {
                if let Some(later) = process.slept_through(planned, at, self.longest_nap) {
                    self.schedule(later.since(at), event);
                    continue;
                }
                process.wakes.remove(&at);
            }
            if event.waits_for_thaw() && process.frozen_until > self.now {
                let after = process.frozen_until.since(self.now);
                self.schedule(after, event);
            } else if life.is_some_and(|life| life != process.life) {
                // It was meant for a process that is dead.
            } else if let Event::Freeze { time, .. } = event {
                process.frozen_until = process.frozen_until.max(self.now + time);
                self.say(&event);
            } else if let Event::Suspend { time, .. } = event {
                process.suspend(self.now, time);
                self.say(&event);
            } else {
                self.say(&event);
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn say(&self, event: &Event) {
        if self.loud && !matches!(event, Event::Wake { .. }) {
            println!("{:>12?} {event:?}", self.now.as_micros());
        }
    }
}
