//! Every call that changes something, given up at every await point, with every fate of its request and reply. Afterwards
//! no lock is left held, no task is lost, and none is there twice.
//!
//! `cargo test -p stanchion-tests --test faults grid -- --nocapture` prints the grid: for each number of polls whether the
//! call was given up after it (`x`) or had ended before (`.`).

use std::future::Future;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use stanchion::{Client, Limit, Outcome, Taken};
use stanchion_tests::faces::{AnyClient, Face, runtime};
use stanchion_tests::probe::Probe;
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, eventually, eventually_some, holds_within, ran_since};
use stanchion_tests::{shared, unique};

use crate::cancelled::assert_no_orphan;
use crate::giving_up::{Polls, faults, late};
use crate::queue_cancelled::assert_untouched;
use crate::queue_support::{census, leased, plain, put};
use crate::{RESEND, SLACK, fixed, ms, open};

/// After how many polls a call is given up; nothing has so many await points as the last.
const POLLS: [usize; 5] = [1, 2, 3, 4, 1_000];

type Play = fn(&Stage) -> bool;

const VERBS: [(&str, Play); 9] = [
    ("acquire", acquire),
    ("acquire_all", acquire_all),
    ("extend", extend),
    ("release", release),
    ("resume", resume),
    ("enqueue", enqueue),
    ("claim", claim),
    ("settle", settle),
    ("gcra_take", take),
];

/// One cell of the grid.
struct Stage {
    verb: &'static str,
    fault: Option<Fault>,
    left: usize,
    proxy: Proxy,
    client: Client,
    truth: AnyClient,
    name: String,
}

impl Stage {
    fn new(verb: &'static str, fault: Option<Fault>, left: usize) -> Self {
        let proxy = Proxy::start(shared());
        let client = runtime().block_on(Client::open(&proxy.url())).unwrap();
        let truth = open(Face::Blocking, &shared().url());
        Self { verb, fault, left, proxy, client, truth, name: unique("grid") }
    }

    fn what(&self) -> String {
        format!("{} with {:?}, after {} polls", self.verb, self.fault, self.left)
    }

    /// Gives the call up, and lets what was sent arrive; its result if it came to one.
    fn give_up<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        if let Some(fault) = &self.fault {
            self.proxy.fault(self.verb, 1, fault.clone());
        }
        let arrived = || late(&self.proxy, self.fault.as_ref(), self.verb);
        let (counted, before) = (self.proxy.count(self.verb), arrived());
        // One that waits for a reply is polled no more, and is given up where it is.
        let patience = if self.fault.is_none() { SOON } else { ms(40) };
        let polls =
            async { tokio::time::timeout(patience, Polls::new(call, self.left)).await.ok().flatten() };
        let found = runtime().block_on(polls);
        if self.proxy.count(self.verb) > counted {
            eventually(SOON, || before.is_none() || arrived() > before);
        }
        self.proxy.behave();
        found
    }
}

/// Whether it was given up.
fn acquire(stage: &Stage) -> bool {
    let lock = stage.client.lock(&stage.name);
    let found = stage.give_up(lock.acquire(fixed(60_000, 60_000)));
    let was_given_up = found.is_none();
    drop(found);
    assert_no_orphan(&stage.truth.lock(&stage.name), None, &stage.what());
    was_given_up
}

fn acquire_all(stage: &Stage) -> bool {
    let names = ["a", "b"].map(|name| format!("{}-{name}", stage.name));
    let lock = stage.client.multi_lock(&names.each_ref().map(String::as_str));
    let found = stage.give_up(lock.acquire(fixed(60_000, 60_000)));
    let was_given_up = found.is_none();
    drop(found);
    for name in &names {
        assert_no_orphan(&stage.truth.lock(name), None, &stage.what());
    }
    was_given_up
}

fn extend(stage: &Stage) -> bool {
    let lock = stage.client.lock(&stage.name);
    let lease = runtime().block_on(lock.acquire(fixed(60_000, 0))).unwrap();
    let found = stage.give_up(lease.extend(ms(90_000)));
    let truth = stage.truth.lock(&stage.name);
    assert_eq!(truth.holder().unwrap().map(|holder| holder.fence), Some(lease.fence()), "{}", stage.what());
    assert!(lease.is_valid(), "{}", stage.what());
    runtime().block_on(lease.release()).unwrap_or_else(|error| panic!("{}: {error}", stage.what()));
    assert_no_orphan(&truth, None, &stage.what());
    found.is_none()
}

fn release(stage: &Stage) -> bool {
    let lock = stage.client.lock(&stage.name);
    let lease = runtime().block_on(lock.acquire(fixed(60_000, 0))).unwrap();
    let found = stage.give_up(lease.release());
    let truth = stage.truth.lock(&stage.name);
    let ended = Instant::now();
    let is_free = holds_within(SOON, || !truth.is_locked().unwrap());
    let took = ran_since(ended);
    assert!(is_free && took < RESEND + SLACK, "{}: the lock is held on for {took:?}", stage.what());
    assert_no_orphan(&truth, None, &stage.what());
    found.is_none()
}

fn resume(stage: &Stage) -> bool {
    let lock = stage.client.lock(&stage.name);
    let lease = runtime().block_on(lock.acquire(fixed(60_000, 0))).unwrap();
    let handle = runtime().block_on(lease.detach(ms(60_000))).unwrap();
    let found = stage.give_up(stage.client.resume_lease(&handle));
    let was_given_up = found.is_none();
    match found {
        Some(lease) => runtime().block_on(lease.unwrap().release()).unwrap(),
        // It was taken back, and what comes late changes nothing: the handle can be used again.
        None => {
            let again = || stage.truth.resume_lease(&handle).ok();
            let lease = eventually_some(SOON, again);
            lease.release().unwrap_or_else(|error| panic!("{}: {error}", stage.what()));
        }
    }
    assert_no_orphan(&stage.truth.lock(&stage.name), None, &stage.what());
    was_given_up
}

fn enqueue(stage: &Stage) -> bool {
    let queue = stage.client.queue(&stage.name);
    let found = stage.give_up(queue.enqueue(plain("a")));
    let truth = stage.truth.queue(&stage.name);
    let again = truth.enqueue(plain("a")).unwrap().outcome;
    let was_there = again == Outcome::Kept;
    assert!(was_there || again == Outcome::Added, "{}: {again:?}", stage.what());
    assert!(was_there || !matches!(found, Some(Ok(_))), "{}: it was acknowledged and is lost", stage.what());
    let popped = truth.pop(10).unwrap();
    assert_eq!(popped.len(), 1, "{}: {popped:?}", stage.what());
    // What was still on its way may come now, once.
    let late = truth.pop(10).unwrap().len();
    assert!(late <= usize::from(!was_there), "{}: it was put in {} times", stage.what(), late + 1);
    found.is_none()
}

fn claim(stage: &Stage) -> bool {
    let truth = stage.truth.queue(&stage.name);
    put(&truth, &["a", "b"]);
    let queue = stage.client.queue(&stage.name);
    let found = stage.give_up(queue.claim(leased(60_000).max(5).wait(SOON)));
    let was_given_up = found.is_none();
    for claim in found.into_iter().flatten().flatten() {
        runtime().block_on(claim.put_back(Duration::ZERO)).unwrap();
    }
    assert_untouched(&truth, &Probe::open(&shared().url()), &["a", "b"], &stage.what());
    was_given_up
}

fn settle(stage: &Stage) -> bool {
    let (truth, queue) = (stage.truth.queue(&stage.name), stage.client.queue(&stage.name));
    put(&truth, &["a"]);
    let claim = runtime().block_on(queue.claim(leased(60_000))).unwrap().remove(0);
    let found = stage.give_up(claim.ack());
    // It may be done or not: said again it is done, once.
    runtime().block_on(claim.ack()).unwrap_or_else(|error| panic!("{}: {error}", stage.what()));
    assert_eq!((census(&truth), truth.stats().unwrap().acked), ([0; 4], 1), "{}", stage.what());
    assert_eq!(truth.get("a").unwrap(), None, "{}", stage.what());
    found.is_none()
}

/// Whatever became of it, the limiter goes on in the time that two copies of it have reserved.
fn take(stage: &Stage) -> bool {
    let limit = Limit::rate(1, ms(200));
    let truth = stage.truth.limiter(&stage.name, limit).unwrap();
    assert_eq!(truth.try_take(1).unwrap(), Taken::Allowed);
    let limiter = stage.client.limiter(&stage.name, limit).unwrap();
    let found = stage.give_up(limiter.take(1, SOON));
    let longest = ms(200) * 3;
    match truth.take(1, longest).unwrap() {
        Taken::Allowed => {}
        Taken::RetryAfter(time) => panic!("{}: it is closed for {time:?}", stage.what()),
    }
    found.is_none()
}

#[test]
fn every_call_given_up_at_every_await() {
    // Most cells wait: all verbs and fates at once, the await points of each one after the other.
    let rows: Vec<_> = thread::scope(|scope| {
        let cells = |verb, play: Play, fault: Option<Fault>| {
            let cell = |left| if play(&Stage::new(verb, fault.clone(), left)) { 'x' } else { '.' };
            POLLS.map(cell).into_iter().collect::<String>()
        };
        let row = |(verb, play): (&'static str, Play)| {
            faults()
                .into_iter()
                .map(|fault| scope.spawn(move || cells(verb, play, fault)))
                .collect::<Vec<_>>()
        };
        let running: Vec<_> = VERBS.into_iter().map(|verb| (verb.0, row(verb))).collect();
        running
            .into_iter()
            .map(|(verb, row)| (verb, row.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()))
            .collect()
    });
    let fates = [
        "normal",
        "request late",
        "reply late",
        "reply lost",
        "request lost",
        "cut before",
        "cut after",
        "cut and late",
        "twice",
    ];
    println!("{:9}{}", "", fates.map(|fate| format!("{fate:14}")).concat());
    for (verb, row) in &rows {
        println!("{verb:9}{}", row.iter().map(|cells| format!("{cells:14}")).collect::<String>());
    }
    for (verb, row) in rows {
        // A reply that nothing holds up may be there before the first poll ends.
        let held_up = |fault: &Option<Fault>| !matches!(fault, None | Some(Fault::Duplicate));
        let mut cells = faults().into_iter().zip(&row).filter(|(fault, _)| held_up(fault));
        assert!(cells.all(|(_, cells)| cells.starts_with('x')), "{verb} is given up at its first await");
        assert!(row[0].ends_with('.'), "{verb} comes to an end if it is let");
    }
}
