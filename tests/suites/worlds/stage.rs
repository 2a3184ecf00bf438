//! The `memory:` store as a function of its rows, the time and a request. What was computed once is remembered,
//! since the same request meets the same rows in many worlds.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::types::Value;
use stanchion::ManualClock;
use stanchion::internals::{Clock, Moment, store_config};
use stanchion::protocol::{Reply, Request, Waiter};
use stanchion::store::Store;
use stanchion::store::sqlite::{Image, SqliteStore, SqliteTarget};
use stanchion::wake::Place;

/// When worlds begin, on the boot clock: so late that its times look like no other number.
pub const DAWN: Moment = Moment::from_nanos(3_000_000_000_000_000);
/// Calls of one client that may wait for hints.
const PLACES: usize = 24;
/// What ends later than this from now is no reason to wait.
const SOON: Duration = Duration::from_secs(5);

/// A state of the store: equal numbers have equal rows.
pub type Rows = u32;

/// What the store did with a request: the reply, which calls of which clients it hinted, and what it is now.
#[derive(Clone)]
pub struct Done {
    pub reply: Reply,
    pub hints: Vec<(usize, u64)>,
    pub rows: Rows,
}

/// See the module's documentation.
pub struct Stage {
    clock: ManualClock,
    stores: Vec<(SqliteStore, Vec<Place>)>,
    images: Vec<Rc<Image>>,
    numbers: HashMap<u64, Rows>,
    known: HashMap<u64, Done>,
    /// What the database has at the moment.
    at: Rows,
    /// Requests that were carried out, rather than remembered.
    pub performed: u64,
}

impl Stage {
    pub fn new(clients: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let clock = ManualClock::new();
        let name = format!("world{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let store = |client| {
            let config = store_config(Clock::Manual(clock.clone()), client).unwrap();
            let hub = Arc::clone(&config.hub);
            let target = SqliteTarget::Memory { name: Some(name.clone()) };
            let store = SqliteStore::open(target, config).unwrap();
            (store, (0..PLACES).map(|_| hub.enter()).collect())
        };
        let stores: Vec<(SqliteStore, Vec<Place>)> = (1..=clients as u64).map(store).collect();
        let mut stage = Self {
            clock,
            stores,
            images: Vec::new(),
            numbers: HashMap::new(),
            known: HashMap::new(),
            at: 0,
            performed: 0,
        };
        let empty = stage.stores[0].0.image().unwrap();
        stage.number(empty);
        stage
    }

    /// The place of a client's n-th waiting call.
    pub fn waiter(&self, client: usize, number: u64) -> Waiter {
        self.stores[client].1[number as usize % PLACES].waiter()
    }

    pub fn time(&self, now: Moment) -> (u64, u64) {
        self.set_clock(now);
        (now.as_micros(), Clock::Manual(self.clock.clone()).wall_micros())
    }

    pub fn perform(
        &mut self,
        rows: Rows,
        now: Moment,
        client: usize,
        request: &Request,
    ) -> Result<Done, String> {
        let key = digest(&(rows, now, client, request, token_of(request)));
        if let Some(done) = self.known.get(&key) {
            return Ok(done.clone());
        }
        self.performed += 1;
        self.set_clock(now);
        if self.at != rows {
            self.stores[0].0.restore(&self.images[rows as usize]).map_err(|failure| failure.message)?;
        }
        // Until it is known what it is now.
        self.at = Rows::MAX;
        let reply = self.stores[client].0.perform(request, Moment::FAR);
        let reply = reply.map_err(|failure| format!("the store failed: {}", failure.message))?;
        let mut hints = Vec::new();
        for (client, (_, places)) in self.stores.iter().enumerate() {
            let hinted = places.iter().filter(|place| place.take_hint());
            hints.extend(hinted.map(|place| (client, place.waiter().seq)));
        }
        let image = self.stores[0].0.image().map_err(|failure| failure.message)?;
        self.at = self.number(image);
        let done = Done { reply, hints, rows: self.at };
        self.known.insert(key, done.clone());
        Ok(done)
    }

    /// The state in which these rows were changed by no request.
    pub fn edited(&mut self, rows: Rows, edit: impl FnOnce(&mut Image)) -> Rows {
        let mut image = self.images[rows as usize].as_ref().clone();
        edit(&mut image);
        image.0.retain(|(_, rows)| !rows.is_empty());
        self.number(image)
    }

    pub fn rows(&self, rows: Rows, table: &str) -> &[Vec<Value>] {
        let found = self.images[rows as usize].0.iter().find(|(name, _)| name == table);
        found.map_or(&[], |(_, rows)| rows)
    }

    /// When something next ends or becomes due at the store.
    pub fn next_instant(&self, rows: Rows, now: Moment) -> Option<Moment> {
        let (boot, wall) = self.time(now);
        let soon = SOON.as_micros() as u64;
        let tables = self.images[rows as usize].0.iter();
        let numbers = tables.flat_map(|(_, rows)| rows.iter().flatten()).filter_map(|value| match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        });
        // Microseconds of the boot clock, or milliseconds of wall time.
        let after = |number: u64| match number {
            number if number > boot && number <= boot + soon => Some(number - boot),
            number if number > wall / 1_000 && number <= (wall + soon) / 1_000 => Some(number * 1_000 - wall),
            _ => None,
        };
        numbers.filter_map(after).min().map(|after| now + Duration::from_micros(after))
    }

    fn number(&mut self, image: Image) -> Rows {
        let next = Rows::try_from(self.images.len()).unwrap();
        let number = *self.numbers.entry(digest(&image)).or_insert(next);
        if number == next {
            self.images.push(Rc::new(image));
        }
        number
    }

    /// A clock that is told to move by nearly all the time there is goes back.
    fn set_clock(&self, to: Moment) {
        let origin = Moment::from_nanos(0);
        let nanos = |moment: Moment| u64::try_from(moment.since(origin).as_nanos()).unwrap();
        let now = Clock::Manual(self.clock.clone()).now();
        self.clock.advance(Duration::from_nanos(nanos(to).wrapping_sub(nanos(now))));
    }
}

/// Whose request it is: the debug text of a token says nothing.
pub fn token_of(request: &Request) -> &str {
    let token = match request {
        Request::Acquire(verb) => &verb.token,
        Request::AcquireAll(verb) => &verb.token,
        Request::Extend(verb) => &verb.token,
        Request::Release(verb) => &verb.token,
        Request::Leave(verb) => &verb.token,
        _ => return "",
    };
    token.as_str()
}

/// A number for what its debug text says.
pub fn digest(what: &impl Debug) -> u64 {
    struct Hashed(DefaultHasher);
    impl Write for Hashed {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut hashed = Hashed(DefaultHasher::new());
    let _ = write!(hashed, "{what:?}");
    hashed.0.finish()
}
