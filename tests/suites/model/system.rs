//! The real thing: carries out what the model is told, and compares.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stanchion::internals::{Clock, ManualClock};
use stanchion::{
    DeadTasks, Enqueued, Error, ErrorKind, KeyLimits, ListOptions, OnDuplicate, QueueConfig, QueueStats,
    Removed, Retry, Task, TaskInfo, TaskState, Version, blocking,
};
use stanchion_tests::unique;

use crate::keys::{Gate, Own, Rate};
use crate::operations::{Answer, Item, Operation, REASON, Reference, START, Slot, When};
use crate::terms::{Id, Live, Millis, Number, Outcome, Place, Policy, Rescheduled, Verdict};

/// How far real times may be off: the time that a test takes, and no more than what tells them apart.
const BLUR: u64 = 60_000;

/// A queue of a store, and what is known about it.
pub(crate) struct System {
    queue: blocking::Queue,
    claims: Vec<blocking::Claim>,
    /// `None` in real time.
    clock: Option<ManualClock>,
    /// The wall time that the model's zero stands for.
    origin: i64,
    /// The store's number for each of the model's.
    numbers: RefCell<BTreeMap<Number, u64>>,
    end_lease: EndLease,
    outlives: Outlives,
}

/// What of a queue has no end, or a later one, than the record that finds it.
pub(crate) type Outlives = Box<dyn Fn(&str) -> Vec<String>>;

/// Ends a lease behind the library's back: an id, and when it ended, in milliseconds since the model's zero.
pub(crate) type EndLease = Box<dyn FnMut(&str, &str, i64, Millis)>;

impl System {
    pub(crate) fn new(
        client: &blocking::Client,
        clock: Option<ManualClock>,
        end_lease: EndLease,
        outlives: Outlives,
    ) -> Self {
        let wall = clock.as_ref().map_or_else(real_wall, manual_wall);
        let origin = wall - START as i64;
        let queue = client.queue(&unique("model"));
        Self { queue, claims: Vec::new(), clock, origin, numbers: RefCell::default(), end_lease, outlives }
    }

    /// Carries out the operation and compares the answer with the model's, which has carried it out already.
    pub(crate) fn apply(mut self, model: &Reference, operation: &Operation) -> Self {
        if self.clock.is_none() {
            // Two operations never share a millisecond, as in the model.
            let begun = real_wall();
            let waited = Instant::now();
            while real_wall() == begun && waited.elapsed() < Duration::from_secs(1) {
                thread::yield_now();
            }
        }
        self.carry_out(model, operation);
        self
    }

    fn carry_out(&mut self, model: &Reference, operation: &Operation) {
        match (operation, &model.answer) {
            (Operation::Enqueue(items), Answer::Enqueued(expected)) => {
                let tasks: Vec<Task> = items.iter().map(|item| self.task(item, model.queue.now)).collect();
                let results = self.queue.enqueue_many(tasks).unwrap();
                assert_eq!(results.len(), expected.len());
                for (result, expected) in results.into_iter().zip(expected) {
                    self.compare_enqueued(result, *expected);
                }
            }
            (Operation::Claim { max, lease }, Answer::Claimed(_, expected)) => {
                let claims = self.queue.claim(options(*max, *lease)).unwrap();
                self.compare_claims(claims, expected);
            }
            (Operation::Settle(verdicts), Answer::Claimed(expected, _)) => {
                let results = self.queue.settle(self.verdicts(verdicts)).unwrap();
                compare_settled(results, expected);
            }
            (Operation::SettleAndClaim { verdicts, max, lease }, Answer::Claimed(accepted, expected)) => {
                let verdicts = self.verdicts(verdicts);
                let (results, claims) = self.queue.settle_and_claim(verdicts, options(*max, *lease)).unwrap();
                compare_settled(results, accepted);
                self.compare_claims(claims, expected);
            }
            (Operation::Extend(slot, lease), Answer::Extended(expected)) => {
                let Some(index) = self.slot(*slot) else { return };
                let result = self.claims[index].extend(millis(*lease));
                assert_eq!(result.is_ok(), *expected, "extend: {result:?}");
                if let Err(error) = result {
                    assert!(error.is_lost(), "{error}");
                }
            }
            (Operation::Pop(max), Answer::Popped(expected)) => {
                let popped = self.queue.pop(*max).unwrap();
                let ids: Vec<&str> = popped.iter().map(|task| task.id.as_str()).collect();
                assert_eq!(ids, expected.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), "pop");
                for (task, (_, version, payload)) in popped.iter().zip(expected) {
                    self.same_number(*version, task.version.get());
                    assert_eq!(task.payload, body(*payload));
                }
            }
            (Operation::Remove(id, _), Answer::Removed(version, expected)) => {
                // No task has the version one.
                let known = |version| self.numbers.borrow().get(&version).copied().unwrap_or(1);
                match (self.queue.remove(id, version.map(known).map(Version::new)).unwrap(), expected) {
                    (Removed::Removed, Ok(true)) | (Removed::Absent, Ok(false)) => {}
                    (Removed::OtherVersion(real), Err(current)) => self.same_number(*current, real.get()),
                    (real, _) => panic!("remove {id}: {real:?}, not {expected:?}"),
                }
            }
            (Operation::Reschedule(id, offset), Answer::Rescheduled(expected)) => {
                let due = self.wall(model.queue.now.saturating_add_signed(*offset));
                match (self.queue.reschedule(id, due).unwrap(), expected) {
                    (stanchion::Rescheduled::Moved(at), Rescheduled::Moved(due)) => {
                        self.same_time(*due, at, "the due of a reschedule");
                    }
                    (stanchion::Rescheduled::Absent, Rescheduled::Absent)
                    | (stanchion::Rescheduled::Claimed, Rescheduled::Claimed)
                    | (stanchion::Rescheduled::Dead, Rescheduled::Dead) => {}
                    (real, _) => panic!("reschedule: {real:?}, not {expected:?}"),
                }
            }
            (Operation::KickIds(ids), Answer::Counted(expected)) => {
                let ids = DeadTasks::ids(ids.iter().copied());
                assert_eq!(self.queue.kick(ids).unwrap(), *expected, "kick");
            }
            (Operation::Kick { count, reason }, Answer::Counted(expected)) => {
                let dead = DeadTasks::oldest(*count).reason(*reason);
                assert_eq!(self.queue.kick(dead).unwrap(), *expected, "kick");
            }
            (Operation::RemoveDead { count, reason }, Answer::Counted(expected)) => {
                let dead = DeadTasks::oldest(*count).reason(*reason);
                assert_eq!(self.queue.remove_dead(dead).unwrap(), *expected, "remove_dead");
            }
            (Operation::RemoveOneDead(number), Answer::Counted(expected)) => {
                let dead = self.list(TaskState::Dead);
                let one = dead.get(number % dead.len().max(1)).map(|task| task.receipt);
                assert_eq!(
                    self.queue.remove_dead(DeadTasks::receipts(one)).unwrap(),
                    *expected,
                    "remove_dead"
                );
            }
            (Operation::Purge, Answer::Counted(expected)) => {
                assert_eq!(self.queue.purge().unwrap(), *expected, "purge");
            }
            (Operation::Pause(true), _) => self.queue.pause().unwrap(),
            (Operation::Pause(false), _) => self.queue.resume().unwrap(),
            (Operation::MaxLen(most), _) => {
                let most = most.map(|most| most as u64);
                self.queue.configure(QueueConfig::new().max_len(most)).unwrap();
            }
            (Operation::DeadMax(most), _) => {
                self.queue.configure(QueueConfig::new().dead_max(*most as u64)).unwrap();
            }
            (Operation::MaxRunning(most), _) => {
                self.configure(|config| config.max_running(most.map(|most| most as u64)));
            }
            (Operation::Rate(rate), _) => self.configure(|config| config.rate(rate.map(real_rate))),
            (Operation::KeyConcurrency(most), _) => {
                self.configure(|config| config.key_concurrency(most.map(|most| most as u32)));
            }
            (Operation::KeyRate(rate), _) => self.configure(|config| config.key_rate(rate.map(real_rate))),
            (Operation::LimitKey(key, own), _) => {
                self.queue.limit_key(key, own.map(real_limits)).unwrap();
            }
            (Operation::Wait(time), _) => self.clock.as_ref().unwrap().advance(millis(*time)),
            (Operation::EndLease(slot), _) => {
                if let Some(id) = model.leased(*slot) {
                    (self.end_lease)(self.queue.name(), id, self.origin, model.end_of_lease());
                }
            }
            (operation, answer) => panic!("the model answered {answer:?} to {operation:?}"),
        }
    }

    fn configure(&self, change: impl FnOnce(QueueConfig) -> QueueConfig) {
        self.queue.configure(change(QueueConfig::new())).unwrap();
    }

    fn compare_enqueued(
        &self,
        result: Result<Enqueued, Error>,
        (outcome, version, due): (Outcome, Number, Millis),
    ) {
        let real = match &result {
            Ok(enqueued) => enqueued,
            Err(error) => {
                assert_eq!((error.kind(), outcome), (ErrorKind::QueueFull, Outcome::Full), "{error}");
                return;
            }
        };
        let expected = match outcome {
            Outcome::Added => stanchion::Outcome::Added,
            Outcome::Kept => stanchion::Outcome::Kept,
            Outcome::Replaced => stanchion::Outcome::Replaced,
            Outcome::Successor => stanchion::Outcome::Successor,
            Outcome::Throttled => stanchion::Outcome::Throttled,
            Outcome::Skipped => stanchion::Outcome::Skipped,
            Outcome::Full => panic!("{real:?}, but the queue is full"),
        };
        assert_eq!(real.outcome, expected, "enqueue of {}", real.id);
        self.same_number(version, real.version.get());
        if outcome == Outcome::Throttled {
            assert_eq!(real.due, None);
        } else {
            self.same_time(due, real.due.expect("a due"), "the due of an enqueue");
        }
    }

    fn compare_claims(&mut self, claims: Vec<blocking::Claim>, expected: &[(Id, Number, Number, u32, u8)]) {
        let ids: Vec<&str> = claims.iter().map(blocking::Claim::id).collect();
        assert_eq!(ids, expected.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), "claim");
        for (claim, (id, receipt, version, attempt, payload)) in claims.iter().zip(expected) {
            assert_eq!((claim.attempt(), claim.payload()), (*attempt, body(*payload)), "the claim of {id}");
            self.same_number(*version, claim.version().get());
            self.same_number(*receipt, claim.receipt().get());
        }
        self.claims.extend(claims);
    }

    fn slot(&self, slot: Slot) -> Option<usize> {
        (!self.claims.is_empty()).then(|| self.claims.len() - 1 - slot % self.claims.len())
    }

    fn verdicts(&self, verdicts: &[(Slot, Verdict)]) -> Vec<stanchion::Verdict> {
        let on = |(slot, verdict): &(Slot, Verdict)| {
            let claim = self.claims[self.slot(*slot)?].clone();
            Some(match verdict {
                Verdict::Ack => claim.acked(),
                Verdict::Nack(delay) => claim.nacked(Retry::After(millis(*delay)), REASON).unwrap(),
                Verdict::Bury => claim.buried(REASON),
                Verdict::PutBack(delay) => claim.returned(millis(*delay)).unwrap(),
                Verdict::Throttle(time) => claim.throttled(millis(*time)).unwrap(),
            })
        };
        verdicts.iter().filter_map(on).collect()
    }

    fn task(&self, item: &Item, now: Millis) -> Task {
        let mut task = Task::new(item.id).payload(body(item.payload)).priority(item.priority);
        task = task.max_attempts(item.max_attempts).on_duplicate(match item.policy {
            Policy::Keep => OnDuplicate::Keep,
            Policy::Skip => OnDuplicate::Skip,
            Policy::Replace => OnDuplicate::Replace,
            Policy::Debounce(max_wait) => OnDuplicate::Debounce { max_wait: millis(max_wait) },
            Policy::Throttle(window) => OnDuplicate::Throttle { window: millis(window) },
        });
        if let Some(key) = item.key {
            task = task.key(key);
        }
        if let Some(expires) = item.expires {
            task = task.expires(millis(expires));
        }
        match item.when {
            When::Now => task,
            When::In(delay) => task.delay(millis(delay)),
            When::At(offset) => task.due(self.wall(now.saturating_add_signed(offset))),
        }
    }

    // The comparison of everything, after every step.

    /// Compares what the store shows of its queue with the model.
    pub(crate) fn compare(&self, model: &Reference) {
        // The store does what the model does, so it keeps what the model keeps.
        assert_eq!(model.watch.violation, None);
        assert_eq!((self.outlives)(self.queue.name()), Vec::<String>::new(), "V5");
        let queue = &model.queue;
        let live = |ids: Vec<Id>, state: TaskState| -> Vec<(Id, TaskState)> {
            ids.into_iter().map(|id| (id, state)).collect()
        };
        for (state, expected) in [
            (TaskState::Ready, live(queue.ready(), TaskState::Ready)),
            (TaskState::Scheduled, live(queue.scheduled(|due, now| due > now), TaskState::Scheduled)),
            (TaskState::Claimed, live(queue.held(), TaskState::Claimed)),
            (TaskState::Held, live(queue.held_back(), TaskState::Held)),
        ] {
            let listed = self.list(state);
            let ids: Vec<&str> = listed.iter().map(|task| task.id.as_str()).collect();
            assert_eq!(ids, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "the list {state:?}");
            for (real, (id, state)) in listed.iter().zip(&expected) {
                self.compare_live(real, &queue.live[id], *state, queue.now);
            }
        }
        let dead = queue.listed_dead();
        let listed = self.list(TaskState::Dead);
        let ids: Vec<&str> = listed.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, dead.iter().map(|dead| dead.id).collect::<Vec<_>>(), "the dead");
        for (real, dead) in listed.iter().zip(dead) {
            assert_eq!(real.state, TaskState::Dead);
            self.compare_task(real, &dead.task);
            self.same_time(dead.died, real.died.expect("a dead task"), "the time of death");
            assert_eq!((real.lease_left, real.successor_due), (Duration::ZERO, None));
        }
        self.compare_looks(model);
        self.compare_stats(model);
    }

    /// In pages of two.
    fn list(&self, state: TaskState) -> Vec<TaskInfo> {
        let (mut tasks, mut options) = (Vec::new(), ListOptions::new(state).max(2));
        loop {
            let page = self.queue.list(options.clone()).unwrap();
            tasks.extend(page.tasks);
            match page.next {
                Some(next) => options = options.page(next),
                None => return tasks,
            }
        }
    }

    fn compare_live(&self, real: &TaskInfo, live: &Live, state: TaskState, now: Millis) {
        assert_eq!(real.state, state, "{}", real.id);
        self.compare_task(real, &live.main);
        assert_eq!(real.died, None);
        assert_eq!(real.successor_due.is_some(), live.successor.is_some(), "the successor of {}", real.id);
        if let (Some(real), Some(successor)) = (real.successor_due, &live.successor) {
            self.same_time(successor.due, real, "the due of a successor");
        }
        match live.place {
            Place::Claimed(ends) if state == TaskState::Claimed => {
                self.same_span(ends - now, real.lease_left, "what is left of a lease");
            }
            _ => assert_eq!(real.lease_left, Duration::ZERO),
        }
    }

    fn compare_task(&self, real: &TaskInfo, task: &crate::terms::Task) {
        let id = &real.id;
        assert_eq!(real.key.as_deref(), task.key, "the key of {}", real.id);
        assert_eq!(real.payload, body(task.payload), "the payload of {id}");
        assert_eq!((real.priority, real.max_attempts), (task.priority, task.max_attempts), "{id}");
        assert_eq!(real.attempts, task.attempts, "the attempts of {id}");
        assert_eq!(real.reason, task.reason, "the reason of {id}");
        self.same_time(task.due, real.due, "the due");
        assert_eq!(real.expires.is_some(), task.expires.is_some(), "the expiry of {id}");
        if let (Some(real), Some(expires)) = (real.expires, task.expires) {
            self.same_time(expires, real, "the expiry");
        }
        self.same_number(task.version, real.version.get());
        self.same_number(task.receipt, real.receipt.get());
    }

    fn compare_looks(&self, model: &Reference) {
        let peeked = self.queue.peek(2).unwrap();
        let ids: Vec<&str> = peeked.iter().map(|task| task.id.as_str()).collect();
        let ready = model.queue.ready();
        assert_eq!(ids, ready[..ready.len().min(2)], "peek");
        for id in crate::operations::IDS {
            let real = self.queue.get(id).unwrap();
            let real = real.as_ref().map(|task| (task.payload.as_slice(), task.state == TaskState::Dead));
            let live = model.queue.live.get(id).map(|live| (body(live.main.payload), false));
            let dead = || model.queue.newest_dead(id).map(|dead| (body(dead.task.payload), true));
            assert_eq!(real, live.or_else(dead), "get {id}");
        }
    }

    fn compare_stats(&self, model: &Reference) {
        let (stats, queue) = (self.queue.stats().unwrap(), &model.queue);
        let counts = [stats.scheduled, stats.ready, stats.claimed, stats.dead, stats.successors];
        let scheduled = queue.scheduled(|due, now| due > now).len();
        let successors = queue.live.values().filter(|live| live.successor.is_some()).count();
        let expected = [scheduled, queue.ready().len(), queue.held().len(), queue.dead.len(), successors];
        assert_eq!(counts, expected.map(|count| count as u64), "scheduled, ready, claimed, dead, successors");
        let totals = [stats.enqueued, stats.acked, stats.retried, stats.died];
        let expected = [queue.enqueued, queue.acked, queue.retried, queue.died];
        assert_eq!(totals, expected, "enqueued, acked, retried, died");
        assert_eq!(stats.held, queue.held_back().len() as u64, "held");
        self.compare_limits(model, &stats);
        assert_eq!(stats.paused, queue.paused);
        assert_eq!(stats.settings.max_len, queue.max_len.map(|most| most as u64));
        assert_eq!(stats.settings.dead_max, queue.dead_max as u64);
        assert_eq!(
            stats.next_due.is_some(),
            queue.next_due().is_some(),
            "the next due: {:?}",
            stats.next_due
        );
        if let (Some(real), Some(next)) = (stats.next_due, queue.next_due()) {
            assert_eq!(real.is_zero(), next == 0, "the next due: {real:?}, not {next}");
            self.same_span(next, real, "the next due");
        }
    }

    fn compare_limits(&self, model: &Reference, stats: &QueueStats) {
        let (queue, settings) = (&model.queue, &stats.settings);
        let (waiting, first) = queue.keys.waiting();
        assert_eq!(
            (stats.keys_waiting, stats.next_key.is_some()),
            (waiting as u64, first.is_some()),
            "waiting"
        );
        if let (Some(real), Some(first)) = (stats.next_key, first) {
            self.same_span(first.saturating_sub(queue.now), real, "the next key");
        }
        let gate = if queue.paused { Gate::Paused } else { queue.gate().1 };
        match (stats.gate, gate) {
            (stanchion::Gate::Open, Gate::Open)
            | (stanchion::Gate::Paused, Gate::Paused)
            | (stanchion::Gate::MaxRunning, Gate::MaxRunning) => {}
            (stanchion::Gate::Rate(real), Gate::Rate(left))
            | (stanchion::Gate::Throttled(real), Gate::Throttled(left)) => {
                self.same_span(left, real, "the gate");
            }
            (real, gate) => panic!("the gate is {real:?}, not {gate:?}"),
        }
        assert_eq!(settings.max_running, queue.keys.max_running.map(|most| most as u64));
        assert_eq!(settings.rate, queue.keys.rate.map(real_rate));
        assert_eq!(settings.key_concurrency, queue.keys.concurrency.map(|most| most as u32));
        assert_eq!(settings.key_rate, queue.keys.key_rate.map(real_rate));
        for key in crate::operations::KEYS {
            let real = self.queue.get_key(key).unwrap();
            assert_eq!(real.limits, queue.keys.own.get(key).copied().map(real_limits), "{key}");
            let of_key = |state: &dyn Fn(&Place) -> bool| {
                let of_key = queue.live.values().filter(|live| live.main.key == Some(key));
                of_key.filter(|live| state(&live.place)).count() as u64
            };
            let counts = [real.running, real.in_line, real.held];
            let expected = [
                of_key(&|place| matches!(place, Place::Claimed(_))),
                of_key(&|place| matches!(place, Place::Ready(_))),
                of_key(&|place| matches!(place, Place::Held(_))),
            ];
            assert_eq!(counts, expected, "running, in line and held of {key}");
        }
    }

    // Numbers and times.

    #[track_caller]
    fn same_number(&self, model: Number, real: u64) {
        same_number(&mut self.numbers.borrow_mut(), model, real);
    }

    fn wall(&self, time: Millis) -> SystemTime {
        UNIX_EPOCH + millis((self.origin + time as i64) as u64)
    }

    #[track_caller]
    fn same_time(&self, model: Millis, real: SystemTime, what: &str) {
        let real = real.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64 - self.origin;
        self.same_millis(model as i64, real, what);
    }

    #[track_caller]
    fn same_span(&self, model: Millis, real: Duration, what: &str) {
        self.same_millis(model as i64, real.as_millis() as i64, what);
    }

    #[track_caller]
    fn same_millis(&self, model: i64, real: i64, what: &str) {
        let blur = if self.clock.is_some() { 0 } else { BLUR };
        assert!(model.abs_diff(real) <= blur, "{what} is {real}, not {model}");
    }
}

/// Each of the model's numbers stands for one of the store's, and both are in the same order.
#[track_caller]
fn same_number(known: &mut BTreeMap<Number, u64>, model: Number, real: u64) {
    if model == 0 || real == 0 {
        return assert_eq!((model == 0, real == 0), (true, true), "number {model} and {real}");
    }
    let before = *known.entry(model).or_insert(real);
    assert_eq!(before, real, "number {model} changed");
    let below = known.range(..model).next_back().map_or(0, |(_, real)| *real);
    let above = known.range(model + 1..).next().map_or(u64::MAX, |(_, real)| *real);
    assert!(below < real && real < above, "number {model} is {real}, between {below} and {above}");
}

fn compare_settled(results: Vec<Result<(), Error>>, expected: &[bool]) {
    let accepted: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, expected, "settle: {results:?}");
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), ErrorKind::StaleReceipt, "{error}");
    }
}

fn options(max: usize, lease: Millis) -> stanchion::ClaimOptions {
    stanchion::ClaimOptions::new().max(max).lease(millis(lease))
}

fn real_rate(rate: Rate) -> stanchion::Rate {
    stanchion::Rate::new(1, millis(rate.per)).burst(rate.burst as u32)
}

fn real_limits(own: Own) -> KeyLimits {
    let limits = KeyLimits::new().weight(own.weight as u32);
    let limits = own.concurrency.map_or(limits, |most| limits.concurrency(most as u32));
    own.rate.map_or(limits, |rate| limits.rate(real_rate(rate)))
}

fn body(payload: u8) -> &'static [u8] {
    [&b""[..], b"one", b"\0two\xff"][usize::from(payload)]
}

fn millis(time: Millis) -> Duration {
    Duration::from_millis(time)
}

pub(crate) fn real_wall() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// A manual clock's wall time begins with the year 2020.
fn manual_wall(clock: &ManualClock) -> i64 {
    let passed = Clock::Manual(clock.clone()).now().as_micros() / 1_000;
    1_577_836_800_000 + passed as i64
}
