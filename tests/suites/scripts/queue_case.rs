//! Requests about queues, and replies to them in one line.

use std::sync::Arc;
use std::time::Duration;

use stanchion::internals::{queue_name, task_id, task_key};
use stanchion::name::TaskKey;
use stanchion::protocol::{
    Abandon, CallId, Cancel, Claim, ClaimReply, ClaimedTask, ClientId, DeadOnes, Due, Enqueue,
    EnqueueOutcome, EventRecord, Events, EventsReply, ExtendClaim, ExtendClaimReply, Fire, FireSchedule,
    Fired, Get, KeyRecord, LimitKey, List, ListKeys, ListSchedules, Missed, NewSchedule, NewTask,
    OnDuplicate, Outcome, Overlap, OwnLimits, PauseSchedule, Peek, Place, Pop, PutSchedules,
    PutSchedulesReply, QueueReply, QueueRequest, QueueVerb, Receipt, Remove, Removed, Request, Reschedule,
    RescheduleReply, ResultOf, ResultReply, ScheduleOwner, ScheduleRecord, Settle, Settled, Settlement,
    Sweep, TaskRecord, TaskState, Verdict, Version, Waiter,
};

use crate::flow_case;

/// The lease of the claims here.
pub const LEASE: u64 = 30_000;

pub fn request(verb: QueueVerb) -> Request {
    Request::Queue(QueueRequest { queue: queue_name("q").unwrap(), verb })
}

/// Puts a client into a request.
pub fn address(verb: &mut QueueVerb, client: ClientId) {
    match verb {
        QueueVerb::Enqueue(enqueue) => enqueue.call.client = client,
        QueueVerb::Claim(claim) | QueueVerb::SettleAndClaim(_, claim) => {
            claim.call.client = client;
            claim.waiter.iter_mut().for_each(|waiter| waiter.client = client);
        }
        QueueVerb::Events(asked) => asked.waiter.iter_mut().for_each(|waiter| waiter.client = client),
        QueueVerb::Result(asked) => asked.waiter.iter_mut().for_each(|waiter| waiter.client = client),
        QueueVerb::Abandon(abandon) => {
            abandon.call.iter_mut().for_each(|call| call.client = client);
            abandon.waiter.iter_mut().for_each(|waiter| waiter.client = client);
        }
        _ => {}
    }
}

fn call(number: u64) -> CallId {
    CallId { client: ClientId(0), slot: 0, number }
}

fn waiter(seq: u64) -> Waiter {
    Waiter { client: ClientId(0), seq }
}

/// A plain task with the body `b`.
pub fn plain(id: &str) -> NewTask {
    NewTask {
        id: task_id(id).unwrap(),
        body: Arc::from(*b"b"),
        due: Due::Now,
        priority: 0,
        max_attempts: 20,
        expires: None,
        on_duplicate: OnDuplicate::Keep,
        key: None,
        node: None,
    }
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Tweak for NewTask {}

/// A plain task with something else about it.
pub trait Tweak: Into<NewTask> {
    fn with_body(self, body: &str) -> NewTask {
        NewTask { body: Arc::from(body.as_bytes()), ..self.into() }
    }

    fn due(self, due: Due) -> NewTask {
        NewTask { due, ..self.into() }
    }

    fn key(self, key: &str) -> NewTask {
        NewTask { key: Some(task_key(key).unwrap()), ..self.into() }
    }

    fn delayed(self, millis: u64) -> NewTask {
        self.due(Due::In(ms(millis)))
    }

    fn replace(self) -> NewTask {
        NewTask { on_duplicate: OnDuplicate::Replace, ..self.into() }
    }

    fn skip(self) -> NewTask {
        NewTask { on_duplicate: OnDuplicate::Skip, ..self.into() }
    }

    fn debounce(self, millis: u64) -> NewTask {
        NewTask { on_duplicate: OnDuplicate::Debounce { max_wait: ms(millis) }, ..self.into() }
    }

    fn throttle(self, millis: u64) -> NewTask {
        NewTask { on_duplicate: OnDuplicate::Throttle { window: ms(millis) }, ..self.into() }
    }
}

/// Call 7 of slot 0, as all calls here.
pub fn enqueue(tasks: impl IntoIterator<Item = NewTask>) -> QueueVerb {
    enqueue_as(7, tasks)
}

pub fn enqueue_as(number: u64, tasks: impl IntoIterator<Item = NewTask>) -> QueueVerb {
    QueueVerb::Enqueue(Enqueue {
        call: call(number),
        timeout: Duration::ZERO,
        tasks: tasks.into_iter().collect(),
    })
}

fn claiming(max: u32, seq: Option<u64>) -> Claim {
    Claim { call: call(7), max, lease: ms(LEASE), waiter: seq.map(waiter), consumer: "".into() }
}

pub fn claim(max: u32) -> QueueVerb {
    QueueVerb::Claim(claiming(max, None))
}

/// The same verb by a consumer that says who it is.
pub fn by(consumer: &str, verb: QueueVerb) -> QueueVerb {
    match verb {
        QueueVerb::Claim(claim) => QueueVerb::Claim(Claim { consumer: consumer.into(), ..claim }),
        QueueVerb::Abandon(abandon) => QueueVerb::Abandon(Abandon { consumer: consumer.into(), ..abandon }),
        other => panic!("{other:?} says nothing of a consumer"),
    }
}

/// A claim that registers as waiter `seq`.
pub fn claim_or_wait(max: u32, seq: u64) -> QueueVerb {
    QueueVerb::Claim(claiming(max, Some(seq)))
}

pub fn ack() -> Verdict {
    Verdict::Ack
}

pub fn nack(delay: u64) -> Verdict {
    Verdict::Nack { delay: ms(delay), reason: "no luck".into() }
}

pub fn bury() -> Verdict {
    Verdict::Bury { reason: "hopeless".into() }
}

fn settlements(items: &[(&str, u64, Verdict)]) -> Settle {
    let settlement = |(id, receipt, verdict): &(&str, u64, Verdict)| Settlement {
        id: task_id(id).unwrap(),
        receipt: Receipt::new(*receipt),
        verdict: verdict.clone(),
    };
    Settle { items: items.iter().map(settlement).collect() }
}

pub fn settle(items: &[(&str, u64, Verdict)]) -> QueueVerb {
    QueueVerb::Settle(settlements(items))
}

/// This concurrency, or none of its own.
pub fn limit_key(key: &str, concurrency: Option<u32>) -> QueueVerb {
    let limits = concurrency.map(|most| OwnLimits { concurrency: Some(most), rate: None, weight: 1 });
    QueueVerb::LimitKey(LimitKey { key: task_key(key).unwrap(), limits })
}

pub fn list_keys(max: u32) -> QueueVerb {
    QueueVerb::ListKeys(ListKeys::Page { from: None, max })
}

pub fn settle_and_claim(items: &[(&str, u64, Verdict)], max: u32) -> QueueVerb {
    QueueVerb::SettleAndClaim(settlements(items), claiming(max, Some(5)))
}

/// As [`settle_and_claim`], by a caller who does not wait.
pub fn settle_and_try(items: &[(&str, u64, Verdict)], max: u32) -> QueueVerb {
    QueueVerb::SettleAndClaim(settlements(items), claiming(max, None))
}

pub fn extend_claim(id: &str, receipt: u64, lease: u64) -> QueueVerb {
    QueueVerb::ExtendClaim(ExtendClaim {
        id: task_id(id).unwrap(),
        receipt: Receipt::new(receipt),
        lease: ms(lease),
        progress: None,
    })
}

pub fn ack_with(result: &str, keep: u64) -> Verdict {
    Verdict::AckWith { result: result.as_bytes().into(), keep: ms(keep) }
}

/// An extension that notes how far the work has come.
pub fn progress(id: &str, receipt: u64, lease: u64, progress: &str) -> QueueVerb {
    let QueueVerb::ExtendClaim(extend) = extend_claim(id, receipt, lease) else { unreachable!() };
    QueueVerb::ExtendClaim(ExtendClaim { progress: Some(progress.as_bytes().into()), ..extend })
}

pub fn cancel(id: &str) -> QueueVerb {
    QueueVerb::Cancel(Cancel { id: task_id(id).unwrap() })
}

/// What became of a task, asked by the waiter with this number, if any.
pub fn result(id: &str, version: u64, seq: Option<u64>) -> QueueVerb {
    let (id, version) = (task_id(id).unwrap(), Version::new(version));
    QueueVerb::Result(ResultOf { id, version, waiter: seq.map(waiter) })
}

/// What happened after that event, asked by the waiter with this number, if any.
pub fn events(after: Option<u64>, seq: Option<u64>) -> QueueVerb {
    QueueVerb::Events(Events { after, waiter: seq.map(waiter) })
}

pub fn abandon(number: Option<u64>, seq: Option<u64>) -> QueueVerb {
    QueueVerb::Abandon(Abandon { call: number.map(call), waiter: seq.map(waiter), consumer: "".into() })
}

pub fn pop(max: u32) -> QueueVerb {
    QueueVerb::Pop(Pop { max })
}

pub fn peek(max: u32) -> QueueVerb {
    QueueVerb::Peek(Peek { max })
}

pub fn get(id: &str) -> QueueVerb {
    QueueVerb::Get(Get { id: task_id(id).unwrap() })
}

pub fn list(state: TaskState, from: Option<&str>, max: u32) -> QueueVerb {
    QueueVerb::List(List { state, prefix: "".into(), bodies: true, from: from.map(place), max })
}

/// As "7/5/a": the key's number, the score, the member.
pub fn place(text: &str) -> Place {
    let parts: Vec<_> = text.splitn(3, '/').collect();
    Place { part: parts[0].parse().unwrap(), score: parts[1].into(), member: parts[2].as_bytes().into() }
}

pub fn told(place: Option<&Place>) -> String {
    let text = |place: &Place| {
        format!(" | next {}/{}/{}", place.part, place.score, String::from_utf8_lossy(&place.member))
    };
    place.map_or_else(String::new, text)
}

pub fn remove(id: &str, version: Option<u64>) -> QueueVerb {
    QueueVerb::Remove(Remove { id: task_id(id).unwrap(), version: version.map(Version::new) })
}

pub fn reschedule(id: &str, due: Due) -> QueueVerb {
    QueueVerb::Reschedule(Reschedule { id: task_id(id).unwrap(), due })
}

/// A schedule with the timing `T`, of tasks with the body `b`.
pub fn schedule_of(id: &str) -> NewSchedule {
    NewSchedule {
        id: task_id(id).unwrap(),
        timing: "T".into(),
        missed: Missed::Last,
        overlap: Overlap::Queue,
        paused: false,
        body: Arc::from(*b"b"),
        priority: 0,
        max_attempts: 20,
        expires: None,
        key: None,
    }
}

pub fn put_schedules(
    owner: Option<(&str, u64)>,
    schedules: impl IntoIterator<Item = NewSchedule>,
) -> QueueVerb {
    let owner = owner.map(|(name, generation)| ScheduleOwner { name: name.into(), generation });
    QueueVerb::PutSchedules(PutSchedules { owner, schedules: schedules.into_iter().collect() })
}

pub fn fire_of(id: &str, version: u64, tasks: &[(&str, u64)]) -> FireSchedule {
    FireSchedule {
        id: task_id(id).unwrap(),
        version: Version::new(version),
        cursor: 500,
        due: Some(4_000_000_000_000),
        missed: 0,
        overlap: Overlap::Queue,
        tasks: tasks.iter().map(|(task, due)| (task_id(task).unwrap(), *due)).collect(),
    }
}

pub fn fire(schedules: impl IntoIterator<Item = FireSchedule>) -> QueueVerb {
    QueueVerb::Fire(Fire { schedules: schedules.into_iter().collect() })
}

pub fn due_schedules(until: u64) -> QueueVerb {
    QueueVerb::ListSchedules(ListSchedules::Due { max: 9, until })
}

pub fn pause_schedule(id: &str, paused: bool) -> QueueVerb {
    QueueVerb::PauseSchedule(PauseSchedule { id: task_id(id).unwrap(), paused })
}

pub fn remove_schedule(id: &str) -> QueueVerb {
    QueueVerb::RemoveSchedule(task_id(id).unwrap())
}

pub fn kick(ids: &[&str]) -> QueueVerb {
    QueueVerb::Kick(Sweep::new(DeadOnes::Ids(ids.iter().map(|id| task_id(id).unwrap()).collect()), 1_000))
}

fn event(event: &EventRecord) -> String {
    let EventRecord { number, what, id, version, attempt, reason, .. } = event;
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("{number} {} {} of {version} at {attempt}{why}; ", id.as_str(), what.name())
}

/// The reply in one line.
pub fn describe(reply: &QueueReply) -> String {
    match reply {
        QueueReply::Enqueue(outcomes) => joined(outcomes, outcome),
        QueueReply::Claim(claim) => claim_reply(claim),
        QueueReply::Settle(settled) => joined(settled, settlement),
        QueueReply::SettleAndClaim(settled, claim) => {
            format!("{} | {}", joined(settled, settlement), claim_reply(claim))
        }
        QueueReply::ExtendClaim(ExtendClaimReply::Extended(left)) => format!("extended {}", left.as_millis()),
        QueueReply::ExtendClaim(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::Abandon => "left".into(),
        QueueReply::Pop(None) => "paused".into(),
        QueueReply::Pop(Some(tasks)) | QueueReply::Peek(tasks) => joined(tasks, record),
        QueueReply::Get(None) => "unknown".into(),
        QueueReply::Get(Some(task)) => record(task),
        QueueReply::List(reply) => {
            format!("{}{}", joined(&reply.tasks, record), told(reply.next.as_ref()))
        }
        QueueReply::Remove(Removed::OtherVersion(version)) => format!("has version {version}"),
        QueueReply::Remove(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::Cancel(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::Result(ResultReply::Done { version, result }) => {
            format!("{} of {version}", String::from_utf8_lossy(result))
        }
        QueueReply::Result(ResultReply::Dead { reason }) => format!("dead: {reason}"),
        QueueReply::Result(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::Events(EventsReply::Off) => "off".into(),
        QueueReply::Events(EventsReply::Found { events, last }) => {
            format!("{}| last {last}", events.iter().map(event).collect::<String>())
        }
        QueueReply::Reschedule(RescheduleReply::Moved(due)) => format!("moved to {due}"),
        QueueReply::Reschedule(reply) => format!("{reply:?}").to_lowercase(),
        QueueReply::Kick(swept) | QueueReply::RemoveDead(swept) => {
            format!("{}{}", swept.count, told(swept.next.as_ref()))
        }
        QueueReply::Purge(count) => count.to_string(),
        QueueReply::Consumers(consumers) => {
            joined(consumers, |one| format!("{:?} waits {} has {}", one.consumer, one.waiters, one.claims))
        }
        // Braces are for placeholders.
        QueueReply::Stats(stats) => format!("{stats:?}").replace('{', "[").replace('}', "]"),
        QueueReply::Pause | QueueReply::Configure => "done".into(),
        QueueReply::PutSchedules(PutSchedulesReply::Older(generation)) => format!("older than {generation}"),
        QueueReply::PutSchedules(PutSchedulesReply::Put(outcomes, removed)) => {
            let removed = if *removed > 0 { format!("; {removed} removed") } else { String::new() };
            format!("{}{removed}", joined(outcomes, |outcome| outcome.name().to_owned()))
        }
        QueueReply::ListSchedules(reply) => {
            let next = reply.next.as_ref();
            format!("{}{}", joined(&reply.schedules, schedule), told(next))
        }
        QueueReply::Fire(fired) => joined(fired, |fired| match fired {
            Fired::Fired { tasks, skipped } => format!("fired {tasks} skipped {skipped}"),
            other => format!("{other:?}").to_lowercase(),
        }),
        QueueReply::LimitKey(true) => "done".into(),
        QueueReply::LimitKey(false) => "full".into(),
        QueueReply::ListKeys(reply) => {
            format!("{}{}", joined(&reply.keys, key_record), told(reply.next.as_ref()))
        }
        QueueReply::PauseSchedule(found) | QueueReply::RemoveSchedule(found) => {
            if *found {
                "done".into()
            } else {
                "absent".into()
            }
        }
        QueueReply::Superseded => "superseded".into(),
        reply => flow_case::describe(reply),
    }
}

pub fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn outcome(outcome: &EnqueueOutcome) -> String {
    match outcome {
        EnqueueOutcome::Accepted { outcome: Outcome::Throttled, version: Version::NONE, due: 0 } => {
            "throttled".into()
        }
        EnqueueOutcome::Accepted { outcome, version, due } => {
            format!("{} {version} due {due}", format!("{outcome:?}").to_lowercase())
        }
        EnqueueOutcome::Full => "full".into(),
    }
}

fn settlement(settled: &Settled) -> String {
    match settled {
        Settled::Done { late, dead } => {
            format!("done{}{}", if *late { " late" } else { "" }, if *dead { " dead" } else { "" })
        }
        Settled::Stale => "stale".into(),
        Settled::Gone => "gone".into(),
    }
}

fn claim_reply(reply: &ClaimReply) -> String {
    match reply {
        ClaimReply::Claimed(tasks) => joined(tasks, claimed),
        ClaimReply::Empty { next_due, rank, slot } => {
            let next = next_due.map_or_else(|| "never".into(), |next| next.as_millis().to_string());
            format!("empty {next}{} rank {rank}", if slot.is_some() { " slot" } else { "" })
        }
        ClaimReply::Paused { rank } => format!("paused rank {rank}"),
        ClaimReply::SchedulesDue(reply) => format!("schedules due; {}", claim_reply(reply)),
        ClaimReply::FlowsDue(reply) => format!("flows due; {}", claim_reply(reply)),
    }
}

fn schedule(record: &ScheduleRecord) -> String {
    let due = record.due.map_or_else(|| "never".into(), |due| due.to_string());
    let paused = if record.paused { " paused" } else { "" };
    let fresh = if record.fresh { " fresh" } else { "" };
    format!("{} version {} due {due}{paused}{fresh}", record.id.as_str(), record.version)
}

fn claimed(task: &ClaimedTask) -> String {
    let ClaimedTask {
        id,
        body,
        receipt,
        attempt,
        max_attempts,
        version,
        due,
        priority,
        remaining,
        key,
        node,
    } = task;
    format!(
        "{} {} receipt {receipt} attempt {attempt}/{max_attempts} version {version} due {due} priority {priority} left {}{}",
        id.as_str(),
        String::from_utf8_lossy(body),
        remaining.as_millis(),
        of_key(key.as_ref()),
    ) + &node.as_ref().map_or_else(String::new, |node| format!(" node {}", flow_case::mark(node)))
}

fn of_key(key: Option<&TaskKey>) -> String {
    key.map_or_else(String::new, |key| format!(" key {}", key.as_str()))
}

fn key_record(key: &KeyRecord) -> String {
    let KeyRecord { key, running, in_line, held, opens, limits } = key;
    let opens = opens.map_or_else(String::new, |opens| format!(" opens in {}", opens.as_millis()));
    let own = limits.map_or_else(String::new, |own| {
        format!(" own {:?} {:?} weight {}", own.concurrency, own.rate.map(|rate| rate.count), own.weight)
    });
    format!("{} runs {running} in line {in_line} held {held}{opens}{own}", key.as_str())
}

fn record(task: &TaskRecord) -> String {
    let TaskRecord { id, state, body, version, due, attempts, receipt, .. } = task;
    let mut text = format!(
        "{} {} {} version {version} due {due} attempts {attempts} receipt {receipt}",
        id.as_str(),
        format!("{state:?}").to_lowercase(),
        String::from_utf8_lossy(body),
    );
    if !task.remaining.is_zero() {
        text += &format!(" left {}", task.remaining.as_millis());
    }
    if !task.reason.is_empty() {
        text += &format!(" reason {}", task.reason);
    }
    if !task.consumer.is_empty() {
        text += &format!(" consumer {}", task.consumer);
    }
    if task.died != 0 {
        text += &format!(" died {}", task.died);
    }
    if let Some(due) = task.successor_due {
        text += &format!(" successor {due}");
    }
    for failure in &task.failures {
        text += &format!(" failed {} {}", failure.at, failure.reason);
    }
    if !task.progress.is_empty() {
        text += &format!(" progress {}", String::from_utf8_lossy(&task.progress));
    }
    if task.cancelled {
        text += " cancelled";
    }
    text + &of_key(task.key.as_ref())
}
