//! What the contract says (docs/DESIGN.md, "The queue"), one verb after the other, on plain maps. It is told
//! what the store performed, in the order in which it did, and says what the answer has to be.
//!
//! Where the contract leaves the order open (tasks that became due, or whose leases ended, at the same moment),
//! the model has that of acceptance, as the store. Who is woken is left to the calm part of a schedule.

mod claim;
mod enqueue;
mod look;
mod manage;
mod settle;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use stanchion::name::TaskId;
use stanchion::protocol::{
    AttemptFailed, CallId, ClaimReply, ClientId, Due, EVENTS_PAGE, EnqueueOutcome, EventRecord, Events,
    EventsReply, Happened, QueueReply, QueueVerb, Receipt, Settled, Version,
};

/// The time of a step: boot clock and wall clock in microseconds, and the latter in milliseconds.
#[derive(Clone, Copy, Default)]
pub struct Now {
    pub boot: u64,
    pub wall: u64,
}

impl Now {
    fn ms(self) -> u64 {
        self.wall / 1_000
    }
}

/// One queue.
#[derive(Clone, Default)]
pub struct Model {
    live: BTreeMap<TaskId, Live>,
    dead: Vec<Dead>,
    windows: HashMap<TaskId, u64>,
    /// Version, until when it is kept, and the bytes.
    results: HashMap<TaskId, (Version, u64, Arc<[u8]>)>,
    calls: HashMap<(ClientId, u32), LastCall>,
    paused: bool,
    max_len: Option<u64>,
    counter: u64,
    sequence: u64,
    serial: u64,
    counts: Counts,
    /// What happened, if that is kept, and the number of the last event.
    events: Vec<EventRecord>,
    keeps_events: bool,
    last_event: u64,
    now: Now,
    /// Deliveries whose leases were found to have ended in this step.
    pub ended: Vec<Receipt>,
}

#[derive(Clone, Default)]
struct Counts {
    enqueued: u64,
    acked: u64,
    retried: u64,
    died: u64,
}

#[derive(Clone)]
struct Live {
    main: Task,
    successor: Option<Task>,
}

#[derive(Clone)]
struct Task {
    /// In order of acceptance.
    serial: u64,
    place: Place,
    version: Version,
    due: u64,
    priority: u8,
    attempts: u32,
    max_attempts: u32,
    first: u64,
    expires: u64,
    receipt: Receipt,
    settled: (Receipt, Ended),
    follows: Follows,
    reason: String,
    consumer: String,
    body: Arc<[u8]>,
    /// Until when no enqueue brings the retry forward.
    backoff: u64,
    /// Where in line it stood when it was delivered.
    turn: (u8, u64),
    failures: Vec<AttemptFailed>,
    /// This run is its last.
    cancelled: bool,
}

/// How a successor comes after main.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Run,
    Retry,
    Debounced,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Scheduled,
    /// With its turn: lower ones first.
    Ready((u8, u64)),
    /// Until then, by the boot clock.
    Claimed(u64),
    Parked,
}

/// How a delivery was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    /// By no verdict.
    #[default]
    Otherwise,
    Ack,
    Nack,
    Bury,
    PutBack,
}

#[derive(Clone)]
struct Dead {
    id: TaskId,
    task: Task,
    receipt: Receipt,
    verdict: Ended,
    cause: Cause,
    died: u64,
}

/// What a task died of. Those that expired are kept apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Failed,
    LeaseEnded,
    Expired,
}

/// The last call of a slot; no reply if it was given up.
#[derive(Clone)]
struct LastCall {
    number: u64,
    reply: Option<Stored>,
}

#[derive(Clone, Default)]
struct Stored {
    outcomes: Vec<EnqueueOutcome>,
    settled: Vec<Settled>,
    claims: Vec<(TaskId, Receipt)>,
}

enum Heard {
    New,
    Repeated(Stored),
    Abandoned,
    Superseded,
}

impl Model {
    /// Takes in what the store performed, and compares the answers.
    pub fn perform(&mut self, now: Now, verb: &QueueVerb, got: &QueueReply) -> Result<(), String> {
        self.now = now;
        self.ended.clear();
        let expected = self.answer(verb, got);
        if neutral(expected.clone()) == neutral(got.clone()) {
            return Ok(());
        }
        Err(format!("{}: {} answered {got:?}, not {expected:?}", rule(verb), verb.name()))
    }

    fn answer(&mut self, verb: &QueueVerb, got: &QueueReply) -> QueueReply {
        match verb {
            QueueVerb::Enqueue(verb) => self.enqueue(verb),
            QueueVerb::Claim(verb) => self.claim(verb),
            QueueVerb::Settle(verb) => QueueReply::Settle(self.settle(verb)),
            QueueVerb::SettleAndClaim(settle, claim) => self.settle_and_claim(settle, claim),
            QueueVerb::ExtendClaim(verb) => QueueReply::ExtendClaim(self.extend_claim(verb)),
            QueueVerb::Abandon(verb) => self.abandon(verb),
            QueueVerb::Pop(verb) => self.pop(*verb),
            QueueVerb::Get(verb) => QueueReply::Get(self.get(&verb.id).map(Box::new)),
            QueueVerb::Remove(verb) => QueueReply::Remove(self.remove(verb)),
            QueueVerb::Cancel(verb) => QueueReply::Cancel(self.cancel(verb)),
            QueueVerb::Result(verb) => QueueReply::Result(self.result(verb)),
            QueueVerb::Reschedule(verb) => QueueReply::Reschedule(self.reschedule(verb)),
            QueueVerb::Kick(verb) => QueueReply::Kick(self.kick(verb)),
            QueueVerb::RemoveDead(verb) => QueueReply::RemoveDead(self.remove_dead(verb)),
            QueueVerb::Stats => self.stats(got),
            QueueVerb::Consumers => self.consumers(got),
            QueueVerb::Pause(verb) => {
                self.paused = verb.paused;
                QueueReply::Pause
            }
            QueueVerb::Purge => QueueReply::Purge(self.purge()),
            QueueVerb::Configure(verb) => {
                self.max_len = verb.max_len.unwrap_or(self.max_len);
                if let Some(most) = verb.events {
                    self.keep_events(most);
                }
                QueueReply::Configure
            }
            QueueVerb::Events(verb) => QueueReply::Events(self.events(*verb)),
            // Schedules have a fleet of their own, and so have keys and limits; flows a world in the engine's tests.
            QueueVerb::Peek(_)
            | QueueVerb::List(_)
            | QueueVerb::LimitKey(_)
            | QueueVerb::ListKeys(_)
            | QueueVerb::PutSchedules(_)
            | QueueVerb::ListSchedules(_)
            | QueueVerb::Fire(_)
            | QueueVerb::PauseSchedule(_)
            | QueueVerb::RemoveSchedule(_)
            | QueueVerb::PutFlow(_)
            | QueueVerb::ReadOutbox(_)
            | QueueVerb::StepFlows(_)
            | QueueVerb::PostMessages(_)
            | QueueVerb::GetFlow(_)
            | QueueVerb::ListFlows(_)
            | QueueVerb::ReadNodes(_)
            | QueueVerb::LostNodes(_) => got.clone(),
        }
    }

    /// Whether nothing lives.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The number of the last event.
    pub fn last_event(&self) -> u64 {
        self.last_event
    }

    fn keep_events(&mut self, most: u64) {
        if most == 0 || !self.keeps_events {
            self.events.clear();
        }
        if most > 0 && !self.keeps_events {
            self.last_event = self.next_number();
        }
        self.keeps_events = most > 0;
    }

    fn events(&self, verb: Events) -> EventsReply {
        if !self.keeps_events {
            return EventsReply::Off;
        }
        let last = self.last_event;
        let after = verb.after.map_or(last, |after| if after > last { 0 } else { after });
        let events = self.events.iter().filter(|event| event.number > after).take(EVENTS_PAGE);
        EventsReply::Found { events: events.cloned().collect(), last }
    }

    fn happen(&mut self, what: Happened, id: &TaskId, task: &Task, reason: &str) {
        let (version, attempt) = (task.version, task.attempts);
        self.note(EventRecord {
            number: 0,
            at: self.now.ms(),
            what,
            id: id.clone(),
            version,
            attempt,
            reason: reason.into(),
        });
    }

    fn note(&mut self, event: EventRecord) {
        if self.keeps_events {
            self.last_event += 1;
            self.events.push(EventRecord { number: self.last_event, ..event });
        }
    }

    fn hear(&self, call: CallId) -> Heard {
        match self.calls.get(&(call.client, call.slot)) {
            Some(last) if last.number > call.number => Heard::Superseded,
            Some(last) if last.number == call.number => {
                last.reply.clone().map_or(Heard::Abandoned, Heard::Repeated)
            }
            _ => Heard::New,
        }
    }

    fn remember(&mut self, call: CallId, reply: Option<Stored>) {
        self.calls.insert((call.client, call.slot), LastCall { number: call.number, reply });
    }

    fn next_version(&mut self) -> Version {
        Version::new(self.next_number())
    }

    fn next_receipt(&mut self) -> Receipt {
        Receipt::new(self.next_number())
    }

    fn next_number(&mut self) -> u64 {
        self.counter = (self.counter + 1).max(self.now.wall);
        self.counter
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn after(&self, time: Duration) -> u64 {
        self.now.ms() + u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap()
    }

    fn due(&self, due: Due) -> u64 {
        match due {
            Due::Now => self.now.ms(),
            Due::In(delay) => self.after(delay),
            Due::At(millis) => millis,
        }
    }

    /// put(main, place)
    fn put(&mut self, id: &TaskId, mut live: Live, place: Option<Place>) {
        live.main.place = if live.main.due > self.now.ms() {
            Place::Scheduled
        } else if let Some(place) = place {
            place
        } else {
            self.sequence += 1;
            Place::Ready((u8::MAX - live.main.priority, self.sequence))
        };
        self.live.insert(id.clone(), live);
    }

    /// Where a task stands that takes the place of one that waits: there, if both are due and of one priority.
    fn stays(&self, before: &Task, task: &mut Task) -> Option<Place> {
        if before.due.max(task.due) > self.now.ms() || before.priority != task.priority {
            return None;
        }
        task.due = before.due;
        Some(before.place)
    }

    /// succeed(id, place)
    fn succeed(&mut self, id: &TaskId, live: Live, place: Option<Place>) {
        self.live.remove(id);
        if let Some(successor) = live.successor {
            let main = Task { settled: live.main.settled, follows: Follows::Run, ..successor };
            self.put(id, Live { main, successor: None }, place);
        }
    }

    /// The end of a task that was cancelled.
    fn end_cancelled(&mut self, id: &TaskId, live: Live) {
        self.happen(Happened::Cancelled, id, &live.main, "");
        self.succeed(id, live, None);
    }

    /// supplant(id, place)
    fn supplant(&mut self, id: &TaskId, mut live: Live, place: Option<Place>) {
        let Live { main, successor: Some(next) } = &mut live else { return self.succeed(id, live, None) };
        if main.receipt != Receipt::NONE {
            main.spend(Ended::Otherwise);
        }
        if next.follows == Follows::Debounced && next.body == main.body {
            next.go_on(main);
        }
        next.hold_back(main.backoff, self.now);
        let place = place.filter(|_| next.priority == main.priority);
        self.succeed(id, live, place);
    }

    /// retry(main, place)
    fn retry(&mut self, id: &TaskId, live: Live, place: Option<Place>) {
        match &live.successor {
            Some(successor) if successor.follows != Follows::Run => self.supplant(id, live, place),
            _ => self.put(id, live, place),
        }
    }

    /// An enqueue or a reschedule comes: a lease that has ended is over, noticed or not.
    fn notice(&mut self, id: &TaskId) {
        let boot = self.now.boot;
        let ended = |live: &Live| matches!(live.main.place, Place::Claimed(ends) if ends <= boot);
        if self.live.get(id).is_some_and(ended) {
            let live = self.live.remove(id).unwrap();
            self.end_lease(id, live);
        }
    }

    /// die(main, reason, receipt)
    fn die(&mut self, id: &TaskId, live: Live, reason: &str, receipt: Receipt, cause: Cause) {
        self.counts.died += 1;
        self.happen(Happened::Dead, id, &live.main, reason);
        let verdict = match live.main.settled {
            (settled, verdict) if receipt != Receipt::NONE && settled == receipt => verdict,
            _ => Ended::Otherwise,
        };
        let receipt = if receipt == Receipt::NONE { self.next_receipt() } else { receipt };
        let task = Task { reason: reason.into(), ..live.main.clone() };
        self.dead.push(Dead { id: id.clone(), task, receipt, verdict, cause, died: self.now.ms() });
        self.succeed(id, live, None);
    }

    /// Whether the task has expired; then it is dead.
    fn expire(&mut self, id: &TaskId) -> bool {
        let expires = self.live[id].main.expires;
        if expires == 0 || expires > self.now.ms() {
            return false;
        }
        let live = self.live.remove(id).unwrap();
        let receipt = live.main.receipt;
        let reason = match &*live.main.reason {
            "" => "expired".to_owned(),
            before => format!("expired; before: {before}"),
        };
        self.die(id, live, &reason, receipt, Cause::Expired);
        true
    }

    /// The first half of promote, for one task: its lease has ended.
    fn end_lease(&mut self, id: &TaskId, mut live: Live) {
        self.ended.push(live.main.receipt);
        if live.main.cancelled {
            return self.end_cancelled(id, live);
        }
        if let Place::Claimed(ends) = live.main.place {
            let ended = self.now.ms() - (self.now.boot - ends) / 1_000;
            live.main.failed(ended, "the lease ended");
        }
        if live.main.attempts >= live.main.max_attempts {
            let receipt = live.main.receipt;
            return self.die(id, live, "the lease ended", receipt, Cause::LeaseEnded);
        }
        self.counts.retried += 1;
        self.happen(Happened::Failed, id, &live.main, "the lease ended");
        live.main.reason = "the lease ended".into();
        if let Place::Claimed(ends) = live.main.place {
            live.main.first = self.now.ms() - (self.now.boot - ends) / 1_000;
        }
        self.retry(id, live, None);
    }
}

impl Task {
    fn is_held(&self, boot: u64) -> bool {
        matches!(self.place, Place::Claimed(ends) if ends > boot)
    }

    /// No enqueue brings a retry forward of its back-off.
    fn hold_back(&mut self, backoff: u64, now: Now) {
        if backoff > now.ms() {
            (self.backoff, self.due) = (backoff, self.due.max(backoff));
        }
    }

    /// The same is asked for again by debounce: attempts go on, with one left in any case.
    fn go_on(&mut self, before: &Self) {
        self.attempts = before.attempts.min(self.max_attempts - 1);
    }

    /// The last five are kept.
    fn failed(&mut self, at: u64, reason: &str) {
        self.failures.push(AttemptFailed { at, reason: reason.into() });
        if self.failures.len() > 5 {
            self.failures.remove(0);
        }
    }

    fn spend(&mut self, verdict: Ended) -> Receipt {
        self.settled = (self.receipt, verdict);
        std::mem::take(&mut self.receipt)
    }
}

/// The answer without what the model does not know.
fn neutral(mut reply: QueueReply) -> QueueReply {
    if let QueueReply::Claim(claim) | QueueReply::SettleAndClaim(_, claim) = &mut reply
        && let ClaimReply::Empty { rank, .. } | ClaimReply::Paused { rank } = claim
    {
        *rank = 0;
    }
    if let QueueReply::Kick(swept) | QueueReply::RemoveDead(swept) = &mut reply {
        // Whether there may be more when as many were found as were wanted.
        swept.next = None;
    }
    reply
}

/// Which rule a wrong answer breaks first of all.
fn rule(verb: &QueueVerb) -> &'static str {
    match verb {
        QueueVerb::Enqueue(_) => "Q5",
        QueueVerb::Claim(_) | QueueVerb::SettleAndClaim(..) | QueueVerb::Pop(_) => "Q6-Q9",
        QueueVerb::Settle(_) | QueueVerb::ExtendClaim(_) => "Q4",
        _ => "Q1",
    }
}
