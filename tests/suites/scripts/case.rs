//! One row of a table: state before, call, reply, state after, hints sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::Connection;
use stanchion::internals::{Clock, lock_name, store_config, token};
use stanchion::protocol::{
    Absence, Acquire, AcquireAll, AcquireAllReply, AcquireReply, BreakLease, ClientId, Digest,
    DowngradeReply, Extend, ExtendReply, Failure, Fence, Holder, HolderReply, Invalidate, Leave, Obstacle,
    QueueVerb, Release, ReleaseReply, Reply, Request, Resume, ResumeReply, StoreValue, StoreValueReply,
    TakeReply, UpgradeReply, Waiter, WaiterReply, Waiters,
};
use stanchion::store::Store;
use stanchion::store::redis::RedisStore;
use stanchion::store::url::{Address, StoreUrl};
use stanchion_tests::shared;

use crate::queue_case;
use crate::state::{Context, State};

/// The ttl that acquires ask for.
pub const TTL: u64 = 5_000;

/// An empty database, the store on it, and a raw connection to it.
pub struct Bench {
    pub store: RedisStore,
    pub raw: Connection,
    pub context: Context,
    url: String,
}

impl Bench {
    pub fn new() -> Self {
        Self::at(&shared().fresh_db())
    }

    /// On a database of another server.
    pub fn at(url: &str) -> Self {
        static CLIENT: AtomicU64 = AtomicU64::new(0xc0);
        let client = CLIENT.fetch_add(1, Ordering::Relaxed);
        let mut bench = Self {
            store: store(url, client),
            raw: connect(url),
            context: Context { client, ..Context::default() },
            url: url.to_owned(),
        };
        bench.context.then = bench.time();
        bench
    }

    /// The server's time in microseconds.
    pub fn time(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.raw).unwrap();
        seconds * 1_000_000 + micros
    }

    pub fn set_up(&mut self, state: &State) {
        self.context.then = self.time();
        state.set_up(&mut self.raw, &self.context);
    }

    /// Runs the request; the context is about it then.
    pub fn call(&mut self, request: Request) -> Result<Reply, Failure> {
        let request = self.addressed(request);
        self.context.before = self.time();
        let reply = perform(&self.store, &request);
        self.context.after = self.time();
        self.context.fence = reply.as_ref().ok().and_then(fence_of).map(Fence::get);
        reply
    }

    /// Puts this bench's client into a request that names one.
    fn addressed(&self, mut request: Request) -> Request {
        if let Request::Acquire(Acquire { waiter: Some(waiter), .. }) = &mut request {
            waiter.client = ClientId(self.context.client);
        }
        if let Request::Queue(request) = &mut request {
            queue_case::address(&mut request.verb, ClientId(self.context.client));
        }
        request
    }

    pub fn state(&mut self) -> State {
        State::read(&mut self.raw)
    }

    /// Runs `work`, and tells which waiters of this bench's client were hinted meanwhile.
    pub fn hinted<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Vec<String>) {
        let mut listener = self.listen();
        let value = work(self);
        (value, self.heard(&mut listener))
    }

    /// A connection that hears the hints for this bench's client from now on.
    pub fn listen(&self) -> Connection {
        let mut listener = connect(&self.url);
        redis::cmd("SUBSCRIBE").arg(self.channel()).exec(&mut listener).unwrap();
        listener
    }

    /// The hints so far. Messages come in order, so nothing is missed and nothing is waited for.
    pub fn heard(&mut self, listener: &mut Connection) -> Vec<String> {
        redis::cmd("PUBLISH").arg(self.channel()).arg("end").exec(&mut self.raw).unwrap();
        let mut hints = Vec::new();
        loop {
            let message: Vec<String> = redis::from_redis_value(listener.recv_response().unwrap()).unwrap();
            let hint = message.into_iter().last().unwrap();
            if hint == "end" {
                return hints;
            }
            hints.push(hint);
        }
    }

    fn channel(&self) -> String {
        format!("stanchion:wake:{:x}", self.context.client)
    }
}

fn connect(url: &str) -> Connection {
    let connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    connection
}

/// A store on the database with this URL.
pub fn store(url: &str, client: u64) -> RedisStore {
    let Address::Redis(address) = StoreUrl::parse(url).unwrap().address else { panic!("not Redis") };
    RedisStore::new(&address, &store_config(Clock::System, client).unwrap()).unwrap()
}

pub fn perform(store: &RedisStore, request: &Request) -> Result<Reply, Failure> {
    store.perform(request, Clock::System.now() + Duration::from_secs(5))
}

/// See the module's documentation.
#[derive(Clone, Debug)]
#[must_use = "a case that is not checked checks nothing"]
pub struct Case {
    given: State,
    request: Request,
    reply: String,
    after: Option<State>,
    hints: Vec<String>,
}

/// A case with its state before.
pub fn given(state: State) -> Given {
    Given(state)
}

pub struct Given(State);

impl Given {
    pub fn call(self, request: impl Into<Call>) -> Case {
        let request = request.into().0;
        Case { given: self.0, request, reply: String::new(), after: None, hints: Vec::new() }
    }
}

impl Case {
    /// The reply, as `describe` writes it; `*` for one that the state shows.
    pub fn replies(mut self, reply: &str) -> Self {
        self.reply = reply.to_owned();
        self
    }

    /// The call hints this waiter.
    pub fn hints(mut self, seq: u64) -> Self {
        self.hints.push(seq.to_string());
        self
    }

    /// Runs it: nothing has changed.
    #[track_caller]
    pub fn changes_nothing(self) {
        let after = self.given.clone();
        self.leaves(after);
    }

    /// Runs it: exactly this is stored afterwards.
    #[track_caller]
    pub fn leaves(mut self, after: State) {
        self.after = Some(after);
        self.run(&mut Bench::new());
    }

    #[track_caller]
    pub fn run(self, bench: &mut Bench) {
        bench.set_up(&self.given);
        let request = self.request.clone();
        let (reply, hints) = bench.hinted(|bench| bench.call(request).unwrap());
        let text = describe(&reply);
        let real = bench.state();
        bench.context.after = bench.time();
        let context = bench.context;
        assert!(
            self.reply == "*" || context.matches(&self.reply, &text),
            "expected {:?}, got {text:?}\n{context:?}",
            self.reply
        );
        assert_eq!(hints, self.hints, "hints");
        let differences = self.after.expect("a case has a state after").differences(&real, &context);
        assert!(differences.is_empty(), "{differences}{context:?}");
        // Live tasks stay for ever, so a queue's tables tell the life of each key.
        for (key, (_, ttl)) in real.0.iter().filter(|(key, _)| !key.starts_with("q:")) {
            let before = self.given.0.get(key).map(|(_, ttl)| *ttl);
            assert!(ttl.is_some() || before == Some(None), "{key} never expires");
        }
    }
}

/// A request, or something that becomes one.
pub struct Call(Request);

macro_rules! calls {
    ($($verb:ident)+) => {$(
        impl From<$verb> for Call {
            fn from(verb: $verb) -> Self {
                Self(Request::$verb(verb))
            }
        }
    )+};
}

calls!(Acquire AcquireAll Extend Release Leave Resume Holder Waiters BreakLease StoreValue Invalidate);

impl From<QueueVerb> for Call {
    fn from(verb: QueueVerb) -> Self {
        Self(queue_case::request(verb))
    }
}

/// A try of token `number`.
pub fn acquire(number: u128) -> Acquire {
    Acquire {
        name: lock_name("a").unwrap(),
        permits: None,
        token: token(number),
        ttl: Duration::from_millis(TTL),
        min_fence: Fence::NONE,
        waiter: None,
        patience: None,
        owner: Arc::from("o"),
        adopt: None,
        early: 0.0,
        looks: false,
    }
}

/// An acquire that joins the line as waiter `seq`.
pub fn wait(number: u128, seq: u64) -> Acquire {
    Acquire { waiter: Some(Waiter { client: ClientId(0), seq }), ..acquire(number) }
}

pub fn extend(number: u128, ttl: u64) -> Extend {
    Extend::new(lock_name("a").unwrap(), token(number), Duration::from_millis(ttl))
}

pub fn release(number: u128) -> Release {
    let name = lock_name("a").unwrap();
    Release {
        name,
        token: token(number),
        cooldown: None,
        acquire_resent: false,
        own_fence: None,
        foreign_share: false,
    }
}

pub fn leave(number: u128) -> Leave {
    Leave { name: lock_name("a").unwrap(), token: token(number), foreign_share: false }
}

pub fn resume(old: u128, new: u128) -> Resume {
    let name = lock_name("a").unwrap();
    Resume { name, old: token(old), new: token(new), undo: false, owner: Arc::from("taker") }
}

/// Takes a swap from `old` to `new` back.
pub fn undo_resume(old: u128, new: u128) -> Resume {
    Resume { undo: true, ..resume(new, old) }
}

pub fn holder() -> Holder {
    Holder { name: lock_name("a").unwrap() }
}

pub fn waiters() -> Waiters {
    Waiters { name: lock_name("a").unwrap() }
}

pub fn break_lease() -> BreakLease {
    BreakLease { name: lock_name("a").unwrap() }
}

fn fence_of(reply: &Reply) -> Option<Fence> {
    match reply {
        Reply::Acquire(AcquireReply::Granted { fence, .. })
        | Reply::Resume(ResumeReply::Resumed { fence, .. }) => Some(*fence),
        Reply::AcquireAll(AcquireAllReply::Granted(fences)) => fences.first().copied(),
        Reply::Holder(held) => held.first().map(|holder| holder.fence),
        _ => None,
    }
}

/// The reply in one line.
pub fn describe(reply: &Reply) -> String {
    match reply {
        Reply::Acquire(AcquireReply::Granted { fence, ttl }) => {
            format!("granted {fence} {}", ttl.as_millis())
        }
        Reply::Acquire(AcquireReply::Waiting(obstacle)) => format!("waiting {}", in_the_way(obstacle)),
        Reply::Acquire(AcquireReply::Busy(obstacle)) => format!("busy {}", in_the_way(obstacle)),
        Reply::Acquire(AcquireReply::Ended) => "ended".into(),
        Reply::AcquireAll(AcquireAllReply::Granted(fences)) => {
            let fences: Vec<_> = fences.iter().map(ToString::to_string).collect();
            format!("all granted {}", fences.join(" "))
        }
        Reply::AcquireAll(AcquireAllReply::Busy) => "not all".into(),
        Reply::AcquireAll(AcquireAllReply::Ended) => "all ended".into(),
        Reply::Acquire(AcquireReply::Cached(value)) => format!("cached {}", value.escape_ascii()),
        Reply::StoreValue(StoreValueReply::Stored) => "stored".into(),
        Reply::Invalidate => "invalidated".into(),
        Reply::Extend(ExtendReply::Extended(left)) => format!("extended {}", left.as_millis()),
        Reply::Extend(ExtendReply::Gone(absence))
        | Reply::Release(ReleaseReply::Gone(absence))
        | Reply::Resume(ResumeReply::Gone(absence))
        | Reply::StoreValue(StoreValueReply::Gone(absence))
        | Reply::Downgrade(DowngradeReply::Gone(absence))
        | Reply::Upgrade(UpgradeReply::Gone(absence)) => gone(absence),
        Reply::Acquire(AcquireReply::OtherLimit(limit)) => format!("other limit {limit}"),
        Reply::Release(ReleaseReply::Released) => "released".into(),
        Reply::Leave => "left".into(),
        Reply::Resume(ResumeReply::Resumed { fence, ttl, permits }) => {
            let of = permits.map_or_else(String::new, |of| format!(" {} of {}", of.weight, of.limit));
            format!("resumed {fence} {}{of}", ttl.as_millis())
        }
        Reply::Holder(held) if held.is_empty() => "free".into(),
        Reply::Holder(held) => held.iter().map(held_by).collect::<Vec<_>>().join("; "),
        Reply::Waiters(waiters) => waiters.iter().map(in_line).collect::<Vec<_>>().join("; "),
        Reply::Downgrade(DowngradeReply::Downgraded) => "downgraded".into(),
        Reply::Upgrade(UpgradeReply::Upgraded(fence)) => format!("upgraded {fence}"),
        Reply::Upgrade(UpgradeReply::Busy) => "others hold it".into(),
        Reply::BreakLease(true) => "broken".into(),
        Reply::BreakLease(false) => "free".into(),
        Reply::Take(TakeReply::Taken(begins)) => format!("taken {}", begins.as_micros()),
        Reply::Take(TakeReply::Refused(begins)) => format!("refused {}", begins.as_micros()),
        Reply::GiveBack(true) => "given back".into(),
        Reply::GiveBack(false) => "gone".into(),
        Reply::Queue(reply) => queue_case::describe(reply),
    }
}

/// For how long it has waited is told as until when: that is the time of the call.
fn in_line(waiter: &WaiterReply) -> String {
    let waiting = u64::try_from(waiter.waiting.expect("always known").as_millis()).unwrap();
    let until = waiter.since_ms + waiting;
    format!("{:?} since {} until {until} weight {}", waiter.owner, waiter.since_ms, waiter.weight)
}

fn held_by(holder: &HolderReply) -> String {
    let weight = if holder.weight == 1 { String::new() } else { format!(" weight {}", holder.weight) };
    format!(
        "{:?} fence {} left {} since {} owner {:?} waiters {}{weight}",
        holder.held_as,
        holder.fence,
        lifetime(holder.remaining),
        holder.since_ms,
        holder.owner,
        holder.waiters
    )
}

fn in_the_way(obstacle: &Obstacle) -> String {
    match &obstacle.unexpiring {
        None => lifetime(obstacle.remaining),
        Some(Digest(digest)) => format!("{} {digest}", lifetime(obstacle.remaining)),
    }
}

fn lifetime(time: Option<Duration>) -> String {
    time.map_or_else(|| "for ever".into(), |time| time.as_millis().to_string())
}

fn gone(absence: &Absence) -> String {
    let Absence { fence, born, broken, foreign } = absence;
    let foreign = if *foreign { " foreign" } else { "" };
    format!("gone fence {fence} born {born} broken {broken}{foreign}")
}
