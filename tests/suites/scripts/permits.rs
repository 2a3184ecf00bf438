//! The scripts of read-write locks and semaphores against the transactions of the same name: random sequences of
//! verbs must be answered alike, and leave the same holders. What depends on time is in the conformance suite.

use std::fmt::Write;
use std::time::{Duration, Instant};

use stanchion::internals::{Clock, name_of_kind, store_config, token};
use stanchion::name::{LockKind, LockName};
use stanchion::protocol::{
    Acquire, AcquireReply, BreakLease, ClientId, Downgrade, DowngradeReply, Extend, ExtendReply, Fence,
    GRANT_WINDOW, Holder, Leave, Permits, Release, ReleaseReply, Reply, Request, Resume, ResumeReply,
    Upgrade, UpgradeReply, Waiter, WaiterReply, Waiters,
};
use stanchion::store::Store;
use stanchion::store::sqlite::{SqliteStore, SqliteTarget};

use stanchion_tests::wait::{SOON, eventually};

use crate::case::Bench;
use crate::in_time::{Difference, in_time};

const SEQUENCES: u64 = 400;
/// An offer lasts for a second; a sequence has to be shorter than that.
const LENGTH: usize = 40;
const TOKENS: u128 = 6;
const LIMIT: u32 = 4;
const TTL: Duration = Duration::from_secs(60);
/// Longer than twice what half a sequence takes, and less than half as long as an offer.
const SHORT: Duration = Duration::from_millis(400);
const SHORT_SEQUENCES: u64 = 30;

/// A lease's time, so coarsely that it is the same in both stores: half a second, a minute, or two.
fn about(time: Duration) -> String {
    format!("about {} s", (time.as_secs_f64() / 30.0).round() * 30.0)
}

/// What a reply says, without times and fences: those differ between two stores.
fn told(reply: &Reply) -> String {
    match reply {
        Reply::Acquire(AcquireReply::Granted { ttl, .. }) => {
            format!("granted for {}", about(*ttl))
        }
        Reply::Acquire(AcquireReply::Waiting(_)) => "waiting".into(),
        Reply::Acquire(AcquireReply::Busy(_)) => "busy".into(),
        Reply::Acquire(AcquireReply::Ended) => "ended".into(),
        Reply::Acquire(AcquireReply::OtherLimit(limit)) => format!("other limit {limit}"),
        Reply::Extend(ExtendReply::Extended(left)) => format!("extended to {}", about(*left)),
        Reply::Release(ReleaseReply::Released) => "released".into(),
        Reply::Resume(ResumeReply::Resumed { permits, .. }) => format!("resumed {permits:?}"),
        Reply::Downgrade(DowngradeReply::Downgraded) => "downgraded".into(),
        Reply::Upgrade(UpgradeReply::Upgraded(_)) => "upgraded".into(),
        Reply::Upgrade(UpgradeReply::Busy) => "others hold it".into(),
        Reply::Extend(ExtendReply::Gone(absence))
        | Reply::Release(ReleaseReply::Gone(absence))
        | Reply::Resume(ResumeReply::Gone(absence))
        | Reply::Downgrade(DowngradeReply::Gone(absence))
        | Reply::Upgrade(UpgradeReply::Gone(absence)) => {
            format!("gone, known {}, broken {}", absence.fence > Fence::NONE, absence.broken == absence.fence)
        }
        Reply::Holder(holders) => {
            let mut held: Vec<_> =
                holders.iter().map(|holder| (holder.held_as.name(), holder.weight)).collect();
            held.sort_unstable();
            format!("{held:?}, {} wait", holders.first().map_or(0, |holder| holder.waiters))
        }
        Reply::Waiters(waiters) => {
            let shown = |waiter: &WaiterReply| format!("{} for {}", waiter.owner, waiter.weight);
            format!("{:?}", waiters.iter().map(shown).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

/// Those who use the lock: a token that is handed over is replaced by a new one.
struct Users {
    tokens: Vec<u128>,
    last: u128,
    /// The new token of a swap that was taken back.
    undone: Option<u128>,
}

impl Users {
    fn new() -> Self {
        Self { tokens: (1..=TOKENS).collect(), last: TOKENS, undone: None }
    }
}

fn any_request(jitter: &mut fastrand::Rng, name: &LockName, users: &mut Users, ttls: &[Duration]) -> Request {
    let name = name.clone();
    let user = jitter.usize(0..users.tokens.len());
    let mine = token(users.tokens[user]);
    let acquire = |jitter: &mut fastrand::Rng, limit| {
        let weight = [1, 1, 2, LIMIT][jitter.usize(0..4)];
        let waiter = Waiter { client: ClientId(7), seq: jitter.u64(1..100) };
        Request::Acquire(Acquire {
            name: name.clone(),
            permits: Some(Permits { weight, limit }),
            token: mine.clone(),
            ttl: ttls[jitter.usize(0..ttls.len())],
            min_fence: Fence::NONE,
            waiter: jitter.bool().then_some(waiter),
            patience: None,
            owner: format!("1 host {user}").into(),
            adopt: None,
            early: 0.0,
            looks: false,
        })
    };
    match jitter.u32(0..22) {
        0..=9 => acquire(jitter, LIMIT),
        10 => acquire(jitter, LIMIT + 1),
        11 => Request::Extend(Extend::new(name, mine, TTL * 2)),
        12..=14 => Request::Release(Release {
            name,
            token: mine,
            cooldown: None,
            acquire_resent: jitter.u8(0..4) == 0,
            own_fence: None,
            foreign_share: false,
        }),
        15 | 16 => Request::Leave(Leave { name, token: mine, foreign_share: false }),
        17 => {
            let owner = "2 host other".into();
            // A swap that was taken back comes after that.
            if let Some(undone) = users.undone.take() {
                return Request::Resume(Resume { name, old: mine, new: token(undone), undo: false, owner });
            }
            users.last += 1;
            let new = token(users.last);
            if jitter.bool() {
                users.undone = Some(users.last);
                return Request::Resume(Resume { name, old: new, new: mine, undo: true, owner });
            }
            users.tokens[user] = users.last;
            Request::Resume(Resume { name, old: mine, new, undo: false, owner })
        }
        19 => Request::Upgrade(Upgrade { name, token: mine, limit: LIMIT }),
        20 => {
            let ttl = ttls[jitter.usize(0..ttls.len())];
            Request::Extend(Extend { exact: true, ..Extend::new(name, mine, ttl) })
        }
        18 => Request::Downgrade(Downgrade { name, token: mine, weight: 1, fence: None }),
        _ => Request::BreakLease(BreakLease { name }),
    }
}

/// Both stores, which are asked the same.
struct Both {
    bench: Bench,
    memory: SqliteStore,
}

impl Both {
    fn new() -> Self {
        let target = SqliteTarget::Memory { name: None };
        let memory = SqliteStore::open(target, store_config(Clock::System, 7).unwrap()).unwrap();
        Self { bench: Bench::new(), memory }
    }

    /// What each of them says to these requests.
    fn ask(&self, requests: &[Request]) -> [String; 2] {
        let until = || Clock::System.now() + Duration::from_secs(5);
        [&self.bench.store as &dyn Store, &self.memory].map(|store| {
            let told = |request| told(&store.perform(request, until()).unwrap());
            requests.iter().map(told).collect::<Vec<_>>().join("; ")
        })
    }

    /// Random requests, and a look after each of them; how long that took.
    fn play(
        &self,
        name: &LockName,
        users: &mut Users,
        jitter: &mut fastrand::Rng,
        length: usize,
        ttls: &[Duration],
    ) -> Result<Duration, Difference> {
        let began = Instant::now();
        let mut story = String::new();
        for _ in 0..length {
            let request = any_request(jitter, name, users, ttls);
            let asked = format!("{request:?}");
            let [redis, sqlite] = self.ask(&[request, holder(name), waiters(name)]);
            writeln!(story, "{asked}\n    {redis}").unwrap();
            if redis != sqlite {
                writeln!(story, "    {sqlite}").unwrap();
                return Err(Difference { after: began.elapsed(), story });
            }
        }
        Ok(began.elapsed())
    }
}

fn holder(name: &LockName) -> Request {
    Request::Holder(Holder { name: name.clone() })
}

fn waiters(name: &LockName) -> Request {
    Request::Waiters(Waiters { name: name.clone() })
}

#[test]
fn both_stores_answer_alike() {
    let both = Both::new();
    for seed in 0..SEQUENCES {
        let kind = if seed % 2 == 0 { LockKind::Semaphore } else { LockKind::ReadWrite };
        in_time(GRANT_WINDOW, |round| {
            let name = name_of_kind(kind, &format!("{seed} {round}")).unwrap();
            let mut jitter = fastrand::Rng::with_seed(seed);
            both.play(&name, &mut Users::new(), &mut jitter, LENGTH, &[TTL])
        });
    }
}

/// The same, with leases that end in the middle of the sequence: all that are short, at a moment between two requests.
#[test]
fn both_stores_forget_ended_leases_alike() {
    let both = Both::new();
    for seed in 0..SHORT_SEQUENCES {
        in_time(SHORT / 2, |round| {
            let name = name_of_kind(LockKind::Semaphore, &format!("short{seed} {round}")).unwrap();
            let (mut users, mut jitter) = (Users::new(), fastrand::Rng::with_seed(seed));
            let mut half = || both.play(&name, &mut users, &mut jitter, LENGTH / 2, &[TTL, SHORT]);
            let first = half()?;
            let ended = Instant::now();
            // In some of them offers run out, too.
            let pause = if seed % 2 == 0 { SHORT } else { GRANT_WINDOW };
            eventually(SOON, || {
                let [redis, sqlite] = both.ask(&[holder(&name)]);
                ended.elapsed() > pause && redis == sqlite
            });
            let late = first.max(ended.elapsed() - pause);
            half().map_err(|second| Difference { after: second.after.max(late), ..second })
        });
    }
}

/// So many holders at most, however they come: counted anew after each request.
#[test]
fn never_more_than_the_limit_and_nothing_is_left_behind() {
    let mut bench = Bench::new();
    let name = name_of_kind(LockKind::Semaphore, "a").unwrap();
    let mut jitter = fastrand::Rng::with_seed(1);
    let until = || Clock::System.now() + Duration::from_secs(5);
    let mut users = Users::new();
    for _ in 0..2_000 {
        bench.store.perform(&any_request(&mut jitter, &name, &mut users, &[TTL]), until()).unwrap();
        let Reply::Holder(holders) =
            bench.store.perform(&Request::Holder(Holder { name: name.clone() }), until()).unwrap()
        else {
            panic!("no holders");
        };
        assert!(holders.iter().map(|holder| holder.weight).sum::<u32>() <= LIMIT + 1);
    }
    for number in 1..=users.last {
        let leave = Leave { name: name.clone(), token: token(number), foreign_share: false };
        bench.store.perform(&Request::Leave(leave), until()).unwrap();
    }
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut bench.raw).unwrap();
    keys.retain(|key| !key.contains("ended"));
    assert_eq!(keys, ["stanchion:semaphore-meta:{Lock:a}"]);
    let used: u32 = redis::cmd("HGET").arg(&keys[0]).arg("used").query(&mut bench.raw).unwrap();
    assert_eq!(used, 0);
}

/// A copy of an acquire may come when the lease that an earlier one began has ended.
#[test]
fn a_token_whose_lease_has_ended_is_granted_anew() {
    let mut bench = Bench::new();
    let name = name_of_kind(LockKind::Semaphore, "a").unwrap();
    let acquire = |number: u128, ttl: Duration| {
        Request::Acquire(Acquire {
            name: name.clone(),
            permits: Some(Permits { weight: 1, limit: LIMIT }),
            token: token(number),
            ttl,
            min_fence: Fence::NONE,
            waiter: None,
            patience: None,
            owner: "1 host label".into(),
            adopt: None,
            early: 0.0,
            looks: false,
        })
    };
    let until = || Clock::System.now() + Duration::from_secs(5);
    let holders =
        |bench: &Bench| match bench.store.perform(&Request::Holder(Holder { name: name.clone() }), until()) {
            Ok(Reply::Holder(holders)) => holders.len(),
            other => panic!("{other:?}"),
        };
    // Another holder keeps the keys alive.
    bench.store.perform(&acquire(2, TTL), until()).unwrap();
    bench.store.perform(&acquire(1, Duration::from_millis(50)), until()).unwrap();
    eventually(SOON, || holders(&bench) == 1);
    let again = bench.store.perform(&acquire(1, TTL), until()).unwrap();
    assert!(matches!(again, Reply::Acquire(AcquireReply::Granted { .. })), "{again:?}");
    assert_eq!(holders(&bench), 2);
    let used: u32 = redis::cmd("HGET")
        .arg("stanchion:semaphore-meta:{Lock:a}")
        .arg("used")
        .query(&mut bench.raw)
        .unwrap();
    assert_eq!(used, 2);
}

/// A late copy of an acquire whose lease has ended, among more of them than one call forgets.
#[test]
fn permits_are_counted_once_however_many_leases_have_ended() {
    const MANY: u32 = 100;
    let mut bench = Bench::new();
    let name = name_of_kind(LockKind::Semaphore, "a").unwrap();
    let acquire = |bench: &Bench, number: u128, weight: u32, ttl: Duration| {
        let request = Acquire {
            name: name.clone(),
            permits: Some(Permits { weight, limit: MANY }),
            ttl,
            ..crate::case::acquire(number)
        };
        let until = Clock::System.now() + Duration::from_secs(5);
        match bench.store.perform(&Request::Acquire(request), until).unwrap() {
            Reply::Acquire(AcquireReply::Granted { .. }) => true,
            Reply::Acquire(AcquireReply::Busy(_)) => false,
            other => panic!("{other:?}"),
        }
    };
    for weights in [[1, 1], [2, 1]] {
        redis::cmd("FLUSHDB").exec(&mut bench.raw).unwrap();
        // One keeps the keys alive.
        assert!(acquire(&bench, 1, weights[0], TTL));
        for number in 100..180 {
            assert!(acquire(&bench, number, weights[1], TTL));
        }
        // All but the first end at once, the one that comes again last of all.
        let ended = bench.time() / 1_000 - 100;
        for number in 100..180u64 {
            let score = ended - (180 - number);
            let mut command = redis::cmd("ZADD");
            command.arg("stanchion:semaphore:{Lock:a}").arg(score).arg(token(number.into()).as_str());
            command.exec(&mut bench.raw).unwrap();
        }
        assert!(acquire(&bench, 179, weights[1], TTL));
        let free = MANY - weights[0] - weights[1];
        assert!(!acquire(&bench, 2, free + 1, TTL), "{weights:?}: more than there are");
        assert!(acquire(&bench, 2, free, TTL), "{weights:?}: {free} permits must be free");
    }
}
