//! What may be done to the queue, drawn at random, and what the model says to it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::keys::{Key, Keys, Own, Rate};
use crate::liveness::Watch;
use crate::queue::Queue;
use crate::terms::{
    Id, Millis, Mutant, New, Number, Outcome, Place, Policy, Rescheduled, Settled, Tie, Verdict,
};

pub(crate) const IDS: [Id; 4] = ["a", "b", "c", "d"];
pub(crate) const KEYS: [Key; 2] = ["k", "l"];
/// When the model begins.
pub(crate) const START: Millis = 1_000_000_000;
/// Long enough that real time does not matter, and unit of all long times.
const LONG: Millis = 1_000_000;

/// Which times there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A clock that stands still but for [`Operation::Wait`].
    Manual,
    /// Real time, in which a test cannot wait: what is due is due now or in the far future, and leases end
    /// only by [`Operation::EndLease`].
    Real,
}

/// When a task is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Now,
    In(Millis),
    /// So long after the present, as an absolute time; negative: before it.
    At(i64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) id: Id,
    pub(crate) payload: u8,
    pub(crate) when: When,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u32,
    pub(crate) expires: Option<Millis>,
    pub(crate) policy: Policy,
    pub(crate) key: Option<Key>,
}

/// Claims are meant by number, counted from the newest, as far as there are any.
pub(crate) type Slot = usize;

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Enqueue(Vec<Item>),
    Claim {
        max: usize,
        lease: Millis,
    },
    Settle(Vec<(Slot, Verdict)>),
    SettleAndClaim {
        verdicts: Vec<(Slot, Verdict)>,
        max: usize,
        lease: Millis,
    },
    Extend(Slot, Millis),
    Pop(usize),
    Remove(Id, Version),
    Reschedule(Id, i64),
    KickIds(Vec<Id>),
    Kick {
        count: u64,
        reason: &'static str,
    },
    RemoveDead {
        count: u64,
        reason: &'static str,
    },
    /// One of those that are dead, as the listing counts them.
    RemoveOneDead(usize),
    Pause(bool),
    Purge,
    MaxLen(Option<usize>),
    DeadMax(usize),
    MaxRunning(Option<usize>),
    Rate(Option<Rate>),
    KeyConcurrency(Option<usize>),
    KeyRate(Option<Rate>),
    LimitKey(Key, Option<Own>),
    Wait(Millis),
    EndLease(Slot),
}

/// Which version a remove asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    Any,
    Current,
    /// One that the task had, or that another has.
    Other,
}

/// What the store has to answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Nothing,
    Enqueued(Vec<(Outcome, Number, Millis)>),
    /// Whether each verdict was accepted; then what was claimed: id, receipt, version, attempt, payload.
    Claimed(Vec<bool>, Vec<(Id, Number, Number, u32, u8)>),
    Extended(bool),
    Popped(Vec<(Id, Number, u8)>),
    /// With the version that was asked for.
    Removed(Option<Number>, Result<bool, Number>),
    Rescheduled(Rescheduled),
    Counted(u64),
}

/// A claim as its holder knows it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) id: Id,
    pub(crate) receipt: Number,
    /// In nanoseconds.
    deadline: u128,
    sent: bool,
    settled: Option<Verdict>,
    lost: bool,
}

/// The queue and what its user holds.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) pace: Pace,
    pub(crate) queue: Queue,
    pub(crate) claims: Vec<Held>,
    pub(crate) answer: Answer,
    pub(crate) watch: Watch,
    /// How many operations there were.
    pub(crate) steps: u64,
}

impl Reference {
    pub(crate) fn new(pace: Pace, tie: Tie, mutant: Option<Mutant>) -> Self {
        let queue = Queue::new(START, tie, mutant);
        let watch = Watch::default();
        Self { pace, queue, claims: Vec::new(), answer: Answer::Nothing, watch, steps: 0 }
    }

    /// Which claim a slot means, counted from the newest.
    pub(crate) fn slot(&self, slot: Slot) -> Option<usize> {
        (!self.claims.is_empty()).then(|| self.claims.len() - 1 - slot % self.claims.len())
    }

    /// The version that a remove asks for; none if it takes any, or there is none to ask for.
    pub(crate) fn version(&self, id: Id, version: Version) -> Option<Number> {
        let live = self.queue.live.get(id);
        let current = live.map_or(1, |live| live.successor.as_ref().unwrap_or(&live.main).version);
        match version {
            Version::Any => None,
            Version::Current => Some(current),
            Version::Other => self.queue.live.values().map(|live| live.main.version).min(),
        }
    }

    pub(crate) fn apply(mut self, operation: &Operation) -> Self {
        self.steps += 1;
        if self.pace == Pace::Real {
            // Real time passes between any two operations, and orders what they do.
            self.queue.now += 1;
        }
        let live = self.queue.live.len();
        self.answer = self.answer_to(operation);
        self.queue.write_keys(0);
        self.queue.trim_dead();
        // What is kicked was accepted before, and is asked for: it may come back into a full queue.
        let kicks = matches!(operation, Operation::KickIds(_) | Operation::Kick { .. });
        self.watch.caps(&self.queue, if kicks { usize::MAX } else { live });
        self.watch.line(&self.queue);
        self
    }

    fn answer_to(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Enqueue(items) => {
                self.queue.make_room(items.len());
                Answer::Enqueued(items.iter().map(|item| self.enqueue(item)).collect())
            }
            Operation::Claim { max, lease } => self.claim(Vec::new(), *max, *lease),
            Operation::Settle(verdicts) => Answer::Claimed(self.settle(verdicts), Vec::new()),
            Operation::SettleAndClaim { verdicts, max, lease } => {
                let settled = self.settle(verdicts);
                self.claim(settled, *max, *lease)
            }
            Operation::Extend(slot, lease) => Answer::Extended(self.extend(*slot, *lease)),
            Operation::Pop(max) => {
                let popped = self.queue.pop(*max);
                self.watch_deliveries(&popped);
                let popped = popped.into_iter();
                Answer::Popped(popped.map(|(id, task)| (id, task.version, task.payload)).collect())
            }
            Operation::Remove(id, version) => {
                let version = self.version(id, *version);
                Answer::Removed(version, self.queue.remove(id, version))
            }
            Operation::Reschedule(id, offset) => {
                let due = self.queue.now.saturating_add_signed(*offset);
                let rescheduled = self.queue.reschedule(id, due);
                if matches!(rescheduled, Rescheduled::Moved(_)) {
                    self.watch.rescheduled(id);
                }
                Answer::Rescheduled(rescheduled)
            }
            Operation::KickIds(ids) => Answer::Counted(ids.iter().map(|id| self.queue.kick_id(id)).sum()),
            Operation::Kick { count, reason } => Answer::Counted(self.queue.kick(*count, reason)),
            Operation::RemoveDead { count, reason } => {
                Answer::Counted(self.queue.remove_dead(*count, reason))
            }
            Operation::RemoveOneDead(number) => Answer::Counted(self.queue.remove_one_dead(*number)),
            Operation::Purge => Answer::Counted(self.queue.purge()),
            Operation::Pause(paused) => {
                self.queue.paused = *paused;
                Answer::Nothing
            }
            Operation::MaxLen(most) => {
                self.queue.max_len = *most;
                Answer::Nothing
            }
            Operation::DeadMax(most) => {
                self.queue.dead_max = *most;
                Answer::Nothing
            }
            Operation::MaxRunning(most) => self.limit(|keys| keys.max_running = *most),
            Operation::Rate(rate) => {
                let now = self.queue.now;
                self.limit(|keys| keys.set_rate(*rate, now))
            }
            Operation::KeyConcurrency(most) => self.limit(|keys| keys.concurrency = *most),
            Operation::KeyRate(rate) => self.limit(|keys| keys.key_rate = *rate),
            Operation::LimitKey(key, own) => {
                match own {
                    Some(own) => {
                        self.queue.keys.counts_runs |= own.concurrency.is_some();
                        self.queue.keys.own.insert(key, *own)
                    }
                    None => self.queue.keys.own.remove(key),
                };
                self.queue.keys.change(key);
                Answer::Nothing
            }
            Operation::Wait(time) => {
                self.queue.now += time;
                Answer::Nothing
            }
            Operation::EndLease(slot) => {
                let ends = self.end_of_lease();
                if let Some(id) = self.leased(*slot)
                    && let Some(live) = self.queue.live.get_mut(id)
                {
                    live.place = Place::Claimed(ends);
                }
                Answer::Nothing
            }
        }
    }

    /// Each key that holds tasks is looked at by the next claim.
    fn limit(&mut self, change: impl FnOnce(&mut Keys)) -> Answer {
        change(&mut self.queue.keys);
        self.queue.keys.sweeps = !self.queue.held_back().is_empty();
        self.queue.keys.counts_runs |= self.queue.keys.concurrency.is_some();
        Answer::Nothing
    }

    /// When a lease ends that is ended from outside: long ago, one after the other.
    pub(crate) fn end_of_lease(&self) -> Millis {
        START / 2 + self.steps
    }

    /// The id of a claim that still has its lease.
    pub(crate) fn leased(&self, slot: Slot) -> Option<Id> {
        let held = &self.claims[self.slot(slot)?];
        let live = self.queue.live.get(held.id)?;
        let has = live.main.receipt == held.receipt && matches!(live.place, Place::Claimed(_));
        has.then_some(held.id)
    }

    fn enqueue(&mut self, item: &Item) -> (Outcome, Number, Millis) {
        let new = item.new_task(self.queue.now);
        let (outcome, version, due) = self.queue.enqueue(&new);
        if !matches!(outcome, Outcome::Throttled | Outcome::Skipped | Outcome::Full) {
            self.watch.enqueued(self.queue.now, &new, outcome, due);
        }
        self.watch.line(&self.queue);
        (outcome, version, due)
    }

    fn watch_deliveries(&mut self, tasks: &[(Id, crate::terms::Task)]) {
        self.watch.delivered(&self.queue, tasks);
    }

    fn claim(&mut self, settled: Vec<bool>, max: usize, lease: Millis) -> Answer {
        let taken = self.queue.claim(max, lease);
        self.watch_deliveries(&taken);
        let now = u128::from(self.queue.now) * 1_000_000;
        for (id, task) in &taken {
            let deadline = now + deadline(lease);
            let (receipt, settled) = (task.receipt, None);
            self.claims.push(Held { id, receipt, deadline, sent: false, settled, lost: false });
        }
        let told = |(id, task): (Id, crate::terms::Task)| {
            (id, task.receipt, task.version, task.attempts, task.payload)
        };
        Answer::Claimed(settled, taken.into_iter().map(told).collect())
    }

    fn settle(&mut self, verdicts: &[(Slot, Verdict)]) -> Vec<bool> {
        // What the claims themselves remember is said before anything is sent.
        let known: Vec<_> = (verdicts.iter())
            .filter_map(|(slot, verdict)| Some((self.slot(*slot)?, *verdict)))
            .map(|(index, verdict)| (index, verdict, self.claims[index].settled))
            .collect();
        let mut accepted = Vec::new();
        for (index, verdict, before) in known {
            let held = &mut self.claims[index];
            if let Some(before) = before {
                accepted.push(before.repeats(verdict));
                continue;
            }
            held.sent = true;
            let is_last = self.queue.live.get(held.id).is_some_and(|live| live.main.receipt == held.receipt);
            let done = self.queue.settle(held.id, held.receipt, verdict, REASON) == Settled::Done
                // Its twin in the same batch was heard first.
                || held.settled.is_some_and(|twin| twin.repeats(verdict));
            if done {
                held.settled = Some(verdict);
            }
            if done && is_last {
                let died =
                    self.queue.newest_dead(held.id).is_some_and(|dead| dead.task.receipt == held.receipt);
                self.watch.settled(self.queue.now, held.id, verdict, !died);
            }
            accepted.push(done);
        }
        self.queue.write_keys(0);
        accepted
    }

    fn extend(&mut self, slot: Slot, lease: Millis) -> bool {
        let Some(index) = self.slot(slot) else { return false };
        let now = u128::from(self.queue.now) * 1_000_000;
        let held = &mut self.claims[index];
        if held.sent || held.lost || now >= held.deadline {
            return false;
        }
        match self.queue.extend(held.id, held.receipt, lease) {
            Some(left) => held.deadline = held.deadline.max(now + deadline(left)),
            None => held.lost = true,
        }
        !held.lost
    }
}

/// Why tasks fail.
pub(crate) const REASON: &str = "as the model says";

/// The truth rule: 1 % and 2 ms less than the store's time. In nanoseconds.
fn deadline(lease: Millis) -> u128 {
    let nanos = u128::from(lease) * 1_000_000;
    nanos - nanos / 100 - 2_000_000
}

impl Item {
    fn new_task(&self, now: Millis) -> New {
        let due = match self.when {
            When::Now => now,
            When::In(delay) => now + delay,
            When::At(offset) => now.saturating_add_signed(offset),
        };
        let Self { id, payload, priority, max_attempts, expires, policy, key, .. } = *self;
        New { id, payload, due, priority, max_attempts, expires, policy, key }
    }
}

/// Times that a test of this pace can use; `offset` keeps long ones of different kinds apart, since real time
/// blurs them by what the test itself takes.
fn times(pace: Pace, short: &'static [Millis], offset: Millis) -> BoxedStrategy<Millis> {
    match pace {
        Pace::Manual => select(short).boxed(),
        Pace::Real => (1..=3u64).prop_map(move |times| times * LONG + offset).boxed(),
    }
}

fn offsets(pace: Pace) -> BoxedStrategy<i64> {
    let ahead = times(pace, &[0, 1, 700, 3_000, 9_000], 500_000).prop_map(|time| time as i64);
    prop_oneof![ahead, select(&[-1i64, -1_000, -500_000][..])].boxed()
}

fn item(pace: Pace) -> impl Strategy<Value = Item> {
    let when = prop_oneof![
        4 => Just(When::Now),
        2 => times(pace, &[1, 500, 2_000, 8_000], 0).prop_map(When::In),
        1 => offsets(pace).prop_map(When::At),
    ];
    let policy = prop_oneof![
        3 => Just(Policy::Keep),
        1 => Just(Policy::Skip),
        2 => Just(Policy::Replace),
        2 => times(pace, &[1, 1_500, 6_000], 250_000).prop_map(Policy::Debounce),
        1 => times(pace, &[1, 2_500, 20_000], 0).prop_map(Policy::Throttle),
    ];
    let expires = prop_oneof![3 => Just(None), 1 => times(pace, &[1, 1_000, 9_000], 0).prop_map(Some)];
    let key = select(&[None, None, Some(KEYS[0]), Some(KEYS[0]), Some(KEYS[1])][..]);
    (select(&IDS[..]), 0..3u8, when, select(&[0u8, 0, 1, 255][..]), 1..=3u32, expires, policy, key).prop_map(
        |(id, payload, when, priority, max_attempts, expires, policy, key)| Item {
            id,
            payload,
            when,
            priority,
            max_attempts,
            expires,
            policy,
            key,
        },
    )
}

fn verdict(pace: Pace) -> impl Strategy<Value = (Slot, Verdict)> {
    let delay = prop_oneof![Just(0), times(pace, &[1, 400, 5_000], 125_000)];
    let put_back = prop_oneof![2 => Just(0), 1 => times(pace, &[1, 400, 5_000], 375_000)];
    let verdict = prop_oneof![
        2 => Just(Verdict::Ack),
        2 => delay.prop_map(Verdict::Nack),
        1 => Just(Verdict::Bury),
        2 => put_back.prop_map(Verdict::PutBack),
        1 => times(pace, &[1, 600, 7_000], 625_000).prop_map(Verdict::Throttle),
    ];
    (0..5usize, verdict)
}

fn most() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), (1..3usize).prop_map(Some)]
}

/// Of tens, since nine tenths of one matter, up to 100 ms. What is longer than the test comes but once.
fn rate(pace: Pace) -> impl Strategy<Value = Option<Rate>> {
    let per = times(pace, &[10, 600, 4_000], 750_000);
    prop_oneof![Just(None), (per, 1..3u64).prop_map(|(per, burst)| Some(Rate { per, burst }))]
}

fn own(pace: Pace) -> impl Strategy<Value = Option<Own>> {
    let own = (most(), rate(pace), 1..3usize);
    let own = own.prop_map(|(concurrency, rate, weight)| Some(Own { concurrency, rate, weight }));
    prop_oneof![1 => Just(None), 2 => own]
}

/// One operation.
pub(crate) fn operation(pace: Pace) -> BoxedStrategy<Operation> {
    let lease = || times(pace, &[50, 1_000, 10_000], 0);
    let id = || select(&IDS[..]);
    let sweep = (1..3u64, select(&["", "the lease", "expired"][..]));
    let version = select(&[Version::Any, Version::Current, Version::Other][..]);
    let passing = match pace {
        Pace::Manual => select(&[1u64, 49, 950, 1_000, 4_000, 11_000][..]).prop_map(Operation::Wait).boxed(),
        Pace::Real => (0..5usize).prop_map(Operation::EndLease).boxed(),
    };
    prop_oneof![
        12 => vec(item(pace), 1..4).prop_map(Operation::Enqueue),
        8 => (1..4usize, lease()).prop_map(|(max, lease)| Operation::Claim { max, lease }),
        8 => vec(verdict(pace), 1..3).prop_map(Operation::Settle),
        3 => (vec(verdict(pace), 0..3), 1..3usize, lease())
            .prop_map(|(verdicts, max, lease)| Operation::SettleAndClaim { verdicts, max, lease }),
        3 => (0..5usize, lease()).prop_map(|(slot, lease)| Operation::Extend(slot, lease)),
        2 => (1..3usize).prop_map(Operation::Pop),
        2 => (id(), version).prop_map(|(id, version)| Operation::Remove(id, version)),
        3 => (id(), offsets(pace)).prop_map(|(id, offset)| Operation::Reschedule(id, offset)),
        2 => vec(id(), 1..4).prop_map(Operation::KickIds),
        1 => sweep.clone().prop_map(|(count, reason)| Operation::Kick { count, reason }),
        1 => sweep.prop_map(|(count, reason)| Operation::RemoveDead { count, reason }),
        2 => (0..5usize).prop_map(Operation::RemoveOneDead),
        2 => any::<bool>().prop_map(Operation::Pause),
        1 => Just(Operation::Purge),
        1 => prop_oneof![Just(None), (1..4usize).prop_map(Some)].prop_map(Operation::MaxLen),
        1 => (0..4usize).prop_map(Operation::DeadMax),
        1 => most().prop_map(Operation::MaxRunning),
        1 => rate(pace).prop_map(Operation::Rate),
        1 => most().prop_map(Operation::KeyConcurrency),
        1 => rate(pace).prop_map(Operation::KeyRate),
        1 => (select(&KEYS[..]), own(pace)).prop_map(|(key, own)| Operation::LimitKey(key, own)),
        10 => passing,
    ]
    .boxed()
}
