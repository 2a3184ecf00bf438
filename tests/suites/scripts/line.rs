//! The line of waiters, of every kind of lock and on both stores: nobody overtakes, whoever is dead is passed, and who
//! is far back asks seldom.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stanchion::ManualClock;
use stanchion::internals::{Clock, name_of_kind, store_config};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{
    Acquire, AcquireReply, CACHED_RANK, ClientId, GRANT_WINDOW, Leave, Permits, Release, Reply, Request,
    Waiter, Waiters,
};
use stanchion::store::Store;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};
use stanchion::wake::{self, Hub};

use crate::case::{Bench, acquire, leave, release};

const KINDS: [LockKind; 4] =
    [LockKind::Exclusive, LockKind::Cached, LockKind::ReadWrite, LockKind::Semaphore];
const LONG: Duration = Duration::from_secs(600);
/// Longer than anybody in line may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// A lock on a store whose time can be moved, as far as its waiters see it.
struct Line {
    name: LockName,
    place: Place,
}

enum Place {
    Redis(Bench),
    Memory { store: SqliteStore, clock: ManualClock, hub: Arc<Hub>, waiters: BTreeMap<u64, wake::Place> },
}

impl Line {
    fn on_redis(kind: LockKind) -> Self {
        Self { name: name_of_kind(kind, "a").unwrap(), place: Place::Redis(Bench::new()) }
    }

    fn in_memory(kind: LockKind) -> Self {
        let clock = ManualClock::new();
        let config = store_config(Clock::Manual(clock.clone()), 7).unwrap();
        let hub = Arc::clone(&config.hub);
        let store = SqliteStore::open(SqliteTarget::Memory { name: None }, config).unwrap();
        let place = Place::Memory { store, clock, hub, waiters: BTreeMap::new() };
        Self { name: name_of_kind(kind, "a").unwrap(), place }
    }

    fn ask(&mut self, request: Request) -> Reply {
        match &mut self.place {
            Place::Redis(bench) => bench.call(request).unwrap(),
            Place::Memory { store, clock, .. } => {
                let until = Clock::Manual(clock.clone()).now() + Duration::from_secs(5);
                store.perform(&request, until).unwrap()
            }
        }
    }

    fn acquire(&mut self, number: u64, waiter: Option<Waiter>) -> AcquireReply {
        let permits = has_permits(self.name.kind()).then_some(Permits { weight: 1, limit: 1 });
        let (name, token) = (self.name.clone(), u128::from(number));
        let request = Acquire { name, permits, ttl: LONG, waiter, ..acquire(token) };
        match self.ask(Request::Acquire(request)) {
            Reply::Acquire(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// What the acquire of this token is told, which does not wait.
    fn tries(&mut self, number: u64) -> AcquireReply {
        self.acquire(number, None)
    }

    /// The same of one that waits.
    fn waits(&mut self, number: u64) -> AcquireReply {
        let waiter = match &mut self.place {
            Place::Redis(_) => Waiter { client: ClientId(0), seq: number },
            Place::Memory { hub, waiters, .. } => {
                waiters.entry(number).or_insert_with(|| hub.enter()).waiter()
            }
        };
        self.acquire(number, Some(waiter))
    }

    fn release(&mut self, number: u64) {
        let name = self.name.clone();
        self.ask(Request::Release(Release { name, ..release(number.into()) }));
    }

    fn leave(&mut self, number: u64) {
        let name = self.name.clone();
        self.ask(Request::Leave(Leave { name, ..leave(number.into()) }));
    }

    fn waiting(&mut self) -> usize {
        let name = self.name.clone();
        match self.ask(Request::Waiters(Waiters { name })) {
            Reply::Waiters(waiters) => waiters.len(),
            other => panic!("{other:?}"),
        }
    }

    /// Time passes for who waits. The server's clock cannot be moved, but the last polls can.
    fn pass(&mut self, time: Duration) {
        let bench = match &mut self.place {
            Place::Redis(bench) => bench,
            Place::Memory { clock, .. } => return clock.advance(time),
        };
        let keys: Vec<String> = redis::cmd("KEYS").arg("stanchion:*waiters:*").query(&mut bench.raw).unwrap();
        for key in keys {
            let entries: Vec<(String, String)> =
                redis::cmd("HGETALL").arg(&key).query(&mut bench.raw).unwrap();
            for (field, entry) in entries {
                let (polled, rest) = entry.split_once(' ').unwrap();
                let polled = polled.parse::<u64>().unwrap() - u64::try_from(time.as_millis()).unwrap();
                let aged = format!("{polled} {rest}");
                redis::cmd("HSET").arg(&key).arg(field).arg(aged).exec(&mut bench.raw).unwrap();
            }
        }
    }

    /// The offer made last is not answered in time.
    fn end_offer(&mut self) {
        match &mut self.place {
            Place::Memory { clock, .. } => clock.advance(GRANT_WINDOW),
            Place::Redis(bench) => {
                let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut bench.raw).unwrap();
                let stays = |key: &&String| ["meta", "line", "waiters"].iter().any(|word| key.contains(word));
                for key in keys.iter().filter(|key| !stays(key)) {
                    redis::cmd("DEL").arg(key).exec(&mut bench.raw).unwrap();
                }
            }
        }
    }

    /// Which waiters are hinted while this happens.
    fn hinted(&mut self, work: impl FnOnce(&mut Self)) -> Vec<u64> {
        if let Place::Redis(bench) = &mut self.place {
            let mut listener = bench.listen();
            work(self);
            let Place::Redis(bench) = &mut self.place else { unreachable!() };
            return bench.heard(&mut listener).iter().map(|hint| hint.parse().unwrap()).collect();
        }
        work(self);
        let Place::Memory { waiters, .. } = &self.place else { unreachable!() };
        waiters.iter().filter(|(_, place)| place.take_hint()).map(|(number, _)| *number).collect()
    }
}

fn lines() -> impl Iterator<Item = (String, Line)> {
    KINDS.into_iter().flat_map(|kind| {
        [
            (format!("{kind:?} on Redis"), Line::on_redis(kind)),
            (format!("{kind:?} in memory"), Line::in_memory(kind)),
        ]
    })
}

fn has_permits(kind: LockKind) -> bool {
    matches!(kind, LockKind::ReadWrite | LockKind::Semaphore)
}

fn is_granted(reply: &AcquireReply) -> bool {
    matches!(reply, AcquireReply::Granted { .. })
}

/// Dead ones at the head, more than one call looks at; then one that lives.
#[test]
fn nobody_overtakes_who_waits_behind_many_dead() {
    for dead in [63, 64, 65, 80, 200] {
        for (what, mut line) in lines() {
            let what = format!("{what}, {dead} dead");
            assert!(is_granted(&line.tries(1)), "{what}");
            for number in 0..dead {
                line.waits(100 + number);
            }
            line.pass(SILENCE);
            assert!(!is_granted(&line.waits(2)), "{what}");
            line.release(1);
            // Each call goes on where the one before it stopped; nobody comes in between.
            for round in 0..10 {
                assert!(!is_granted(&line.tries(3)), "{what}: a try overtook in round {round}");
                assert!(!is_granted(&line.waits(4)), "{what}: a newcomer overtook in round {round}");
            }
            assert!(is_granted(&line.waits(2)), "{what}");
            assert_eq!(line.waiting(), 1, "{what}: the newcomer");
        }
    }
}

fn rank(reply: &AcquireReply) -> u32 {
    match reply {
        AcquireReply::Waiting(obstacle) => obstacle.rank,
        other => panic!("{other:?}"),
    }
}

/// The further back, the longer the pause that is granted; nobody who keeps to it is passed or left out. On Redis the time
/// between two calls would count, too: its entries are in `acquire_in_line`.
#[test]
fn whoever_is_far_back_may_be_silent_for_longer() {
    for kind in KINDS {
        let mut line = Line::in_memory(kind);
        line.tries(1);
        // Those who wait for a value are all served at once, and ask more often.
        let most = if kind == LockKind::Cached { CACHED_RANK } else { 60 };
        for number in 0..80 {
            let told = rank(&line.waits(100 + number)).min(most);
            assert_eq!(told, u32::try_from(number).unwrap().min(most), "{kind:?}");
        }
        line.pass(Duration::from_millis(2_500));
        assert_eq!(line.waiting(), 72, "{kind:?}: the first eight are gone");
        line.pass(Duration::from_millis(375));
        assert_eq!(line.waiting(), 71, "{kind:?}");
        line.pass(Duration::from_millis(375 * 20));
        assert_eq!(line.waiting(), 51, "{kind:?}");
        // Whoever asks is told how many of those before it are alive, and drops the others.
        assert_eq!(rank(&line.waits(150)), most.min(21), "{kind:?}");
        line.pass(Duration::from_secs(20));
        assert_eq!(line.waiting(), 0, "{kind:?}");
        assert_eq!(rank(&line.waits(150)), 0, "{kind:?}");
    }
}

/// Whoever makes an offer comes back to see whether it was answered, however far back it is.
#[test]
fn whoever_makes_an_offer_comes_back_soon() {
    for (what, mut line) in lines() {
        line.tries(1);
        for number in 0..31 {
            line.waits(100 + number);
        }
        assert!(rank(&line.waits(130)) >= CACHED_RANK, "{what}");
        // The lock is free, and the first of the line is dead.
        line.release(1);
        line.end_offer();
        let AcquireReply::Waiting(offered) = line.waits(130) else { panic!("{what}") };
        assert_eq!((offered.rank, offered.remaining), (0, Some(GRANT_WINDOW)), "{what}");
        assert!(is_granted(&line.waits(101)), "{what}");
    }
}

/// Who is offered the lock may be dead. Those behind see it, and see to it in time.
#[test]
fn an_offer_rouses_those_near_the_head_who_poll_seldom() {
    for (what, mut line) in lines() {
        line.tries(1);
        for number in 0..30 {
            line.waits(100 + number);
        }
        // The first eight poll often, so that nobody has to be told.
        assert_eq!(line.hinted(|line| line.release(1)), [100], "{what}");
        for number in 100..106 {
            assert!(is_granted(&line.waits(number)), "{what}");
            assert_eq!(line.hinted(|line| line.release(number)), [number + 1], "{what}");
        }
        // Now the others come near.
        assert!(is_granted(&line.waits(106)), "{what}");
        let woken: Vec<u64> = (107..115).collect();
        assert_eq!(line.hinted(|line| line.release(106)), woken, "{what}");
        for number in 108..115 {
            line.waits(number);
        }
        assert!(is_granted(&line.waits(107)), "{what}");
        assert_eq!(line.hinted(|line| line.release(107)), [108], "{what}: once is enough");
    }
}

/// The first of the line leaves: those behind it are nearer to the head.
#[test]
fn so_does_who_leaves_the_line() {
    for (what, mut line) in lines() {
        line.tries(1);
        for number in 0..12 {
            line.waits(100 + number);
        }
        for number in 100..107 {
            assert_eq!(line.hinted(|line| line.leave(number)), Vec::<u64>::new(), "{what}");
        }
        assert_eq!(line.hinted(|line| line.leave(107)), [108, 109, 110, 111], "{what}");
    }
}
