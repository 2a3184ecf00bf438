//! Requests about queues: their keys and arguments.

use std::time::Duration;

use redis::Cmd;

use crate::protocol::{
    Abandon, CallId, Cancel, Claim, Configure, DeadOnes, DiedBy, Due, Enqueue, Events, ExtendClaim, Get,
    INTAKE_MAX_ATTEMPTS, List, NewTask, OnDuplicate, Pause, PauseSchedule, Peek, Place, Pop, QueueRequest,
    QueueVerb, ReadOutbox, Remove, Reschedule, ResultOf, Settle, Sweep, Verdict, Version, Waiter,
};
use crate::store::redis::code::{NUMBER_BITS, STATES};
use crate::store::redis::keys::{
    QUEUE_KEYS_COUNT, call_key, each_queue_key, flow_keys, result_keys, schedule_keys,
};
use crate::store::redis::script::Verb;

mod flows;
mod keys;
mod reply;
mod schedules;

pub(super) use reply::decode;

/// The largest number that is sent.
const MOST: u64 = 1 << NUMBER_BITS;

/// The script of a verb.
pub(super) fn verb(verb: &QueueVerb) -> Verb {
    match verb {
        QueueVerb::Enqueue(_) => Verb::Enqueue,
        QueueVerb::Claim(_) => Verb::Claim,
        QueueVerb::Settle(_) => Verb::Settle,
        QueueVerb::SettleAndClaim(..) => Verb::SettleAndClaim,
        QueueVerb::ExtendClaim(_) => Verb::ExtendClaim,
        QueueVerb::Abandon(_) => Verb::Abandon,
        QueueVerb::Pop(_) => Verb::Pop,
        QueueVerb::Peek(_) => Verb::Peek,
        QueueVerb::Get(_) => Verb::Get,
        QueueVerb::Result(_) => Verb::Result,
        QueueVerb::List(_) => Verb::List,
        QueueVerb::Remove(_) => Verb::Remove,
        QueueVerb::Cancel(_) => Verb::Cancel,
        QueueVerb::Reschedule(_) => Verb::Reschedule,
        QueueVerb::Kick(_) => Verb::Kick,
        QueueVerb::RemoveDead(_) => Verb::RemoveDead,
        QueueVerb::Stats => Verb::Stats,
        QueueVerb::Consumers => Verb::Consumers,
        QueueVerb::Pause(_) => Verb::Pause,
        QueueVerb::Purge => Verb::Purge,
        QueueVerb::Configure(_) => Verb::Configure,
        QueueVerb::Events(_) => Verb::Events,
        QueueVerb::LimitKey(_) => Verb::LimitKey,
        QueueVerb::ListKeys(_) => Verb::ListKeys,
        QueueVerb::PutSchedules(_) => Verb::PutSchedules,
        QueueVerb::ListSchedules(_) => Verb::ListSchedules,
        QueueVerb::Fire(_) => Verb::Fire,
        QueueVerb::PauseSchedule(_) => Verb::PauseSchedule,
        QueueVerb::RemoveSchedule(_) => Verb::RemoveSchedule,
        QueueVerb::PutFlow(_) => Verb::PutFlow,
        QueueVerb::ReadOutbox(_) => Verb::ReadOutbox,
        QueueVerb::StepFlows(_) => Verb::StepFlows,
        QueueVerb::PostMessages(_) => Verb::PostMessages,
        QueueVerb::GetFlow(_) => Verb::GetFlow,
        QueueVerb::ListFlows(_) => Verb::ListFlows,
        QueueVerb::ReadNodes(_) => Verb::ReadNodes,
        QueueVerb::LostNodes(_) => Verb::LostNodes,
    }
}

/// How many keys, and the keys.
pub(super) fn encode_keys(command: &mut Cmd, request: &QueueRequest) {
    let call = call_of(&request.verb).map(|call| call_key(&request.queue, &call));
    let schedules = schedules::are_meant(&request.verb).then(|| schedule_keys(&request.queue));
    let results = has_results(&request.verb).then(|| result_keys(&request.queue));
    let more = schedules.as_ref().map_or(call.as_slice(), <[String; 2]>::as_slice);
    let results = results.as_ref().map_or(&[][..], <[String; 2]>::as_slice);
    let flows = flow_keys(&request.queue, verb(&request.verb).keys());
    command.arg(QUEUE_KEYS_COUNT + more.len() + results.len() + flows.len());
    each_queue_key(&request.queue, |key| {
        command.arg(key);
    });
    command.arg(more).arg(results).arg(flows);
}

pub(super) fn encode_arguments(command: &mut Cmd, request: &QueueRequest) {
    match &request.verb {
        QueueVerb::Enqueue(enqueue) => encode_enqueue(command, enqueue),
        QueueVerb::Claim(claim) => encode_claim(command, claim),
        QueueVerb::Settle(settle) => encode_settlements(command, settle),
        QueueVerb::SettleAndClaim(settle, claim) => {
            encode_claim(command, claim);
            encode_settlements(command, settle);
        }
        QueueVerb::ExtendClaim(ExtendClaim { id, receipt, lease, progress }) => {
            command.arg(id.as_str()).arg(receipt.get()).arg(millis(*lease)).arg(progress.as_deref());
        }
        QueueVerb::Abandon(Abandon { call, waiter, consumer }) => {
            command.arg(call.map_or_else(String::new, |call| call.number.to_string()));
            command.arg(name_of(*waiter, consumer));
        }
        QueueVerb::Pop(Pop { max }) | QueueVerb::Peek(Peek { max }) => {
            command.arg(*max);
        }
        QueueVerb::Get(Get { id }) | QueueVerb::Cancel(Cancel { id }) => {
            command.arg(id.as_str());
        }
        QueueVerb::Result(ResultOf { id, version, waiter }) => {
            command.arg(id.as_str()).arg(version.get()).arg(seat(*waiter));
        }
        QueueVerb::List(List { state, prefix, bodies, from, max }) => {
            let number = STATES.iter().find(|row| row.2 == *state).map_or(0, |row| row.1);
            command.arg(number).arg(*max).arg(u8::from(*bodies)).arg(&**prefix);
            encode_place(command, from.as_ref());
        }
        QueueVerb::Remove(Remove { id, version }) => {
            command.arg(id.as_str()).arg(text(version.map(Version::get)));
        }
        QueueVerb::Reschedule(Reschedule { id, due }) => {
            let (kind, due) = encoded(*due);
            command.arg(id.as_str()).arg(format!("{kind}{due}"));
        }
        QueueVerb::Kick(sweep) | QueueVerb::RemoveDead(sweep) => encode_sweep(command, sweep),
        QueueVerb::Pause(Pause { paused }) => {
            command.arg(u8::from(*paused));
        }
        QueueVerb::Configure(configure) => encode_settings(command, configure),
        QueueVerb::Events(Events { after, waiter }) => {
            command.arg(text(*after)).arg(seat(*waiter));
        }
        QueueVerb::LimitKey(limit) => keys::encode_limit(command, limit),
        QueueVerb::ListKeys(list) => keys::encode_list(command, list),
        QueueVerb::PutSchedules(put) => schedules::encode_put(command, put),
        QueueVerb::ListSchedules(list) => schedules::encode_list(command, list),
        QueueVerb::Fire(fire) => schedules::encode_fire(command, fire),
        QueueVerb::PauseSchedule(PauseSchedule { id, paused }) => {
            command.arg(id.as_str()).arg(u8::from(*paused));
        }
        QueueVerb::RemoveSchedule(id) => {
            command.arg(id.as_str());
        }
        QueueVerb::Stats | QueueVerb::Consumers | QueueVerb::Purge => {}
        QueueVerb::PutFlow(put) => flows::encode_put(command, put),
        QueueVerb::ReadOutbox(ReadOutbox { max }) => {
            command.arg(*max);
        }
        QueueVerb::StepFlows(step) => flows::encode_step(command, step),
        QueueVerb::PostMessages(post) => flows::encode_post(command, post),
        QueueVerb::GetFlow(id) => {
            command.arg(id.as_str());
        }
        QueueVerb::ListFlows(list) => flows::encode_list(command, list),
        QueueVerb::ReadNodes(read) => flows::encode_read(command, read),
        QueueVerb::LostNodes(lost) => flows::encode_lost(command, lost),
    }
}

fn encode_sweep(command: &mut Cmd, sweep: &Sweep) {
    let among = match &sweep.among {
        DeadOnes::Ids(_) => "i",
        DeadOnes::Receipts(_) => "r",
        DeadOnes::Oldest => "o",
    };
    let until = match sweep.until {
        DiedBy::Ago(time) => format!("i{}", millis(time)),
        DiedBy::Then(time) => format!("a{}", time.min(MOST)),
    };
    command.arg(among).arg(sweep.max).arg(&*sweep.reason).arg(&*sweep.prefix).arg(until);
    encode_place(command, sweep.from.as_ref());
    match &sweep.among {
        DeadOnes::Ids(ids) => ids.iter().for_each(|id| {
            command.arg(id.as_str());
        }),
        DeadOnes::Receipts(receipts) => receipts.iter().for_each(|receipt| {
            command.arg(receipt.get());
        }),
        DeadOnes::Oldest => {}
    }
}

/// A place as sets.lua has it; part 0 is the beginning.
fn encode_place(command: &mut Cmd, place: Option<&Place>) {
    match place {
        Some(Place { part, score, member }) => command.arg(*part).arg(&**score).arg(&**member),
        None => command.arg(0).arg("").arg(""),
    };
}

fn encode_settings(command: &mut Cmd, configure: &Configure) {
    let max_len =
        configure.max_len.map(|max_len| max_len.map_or_else(|| "-".into(), |most| text(Some(most))));
    command.arg(max_len.unwrap_or_default()).arg(text(configure.dead_max));
    command.arg(text(configure.dead_age.map(millis))).arg(text(configure.dead_bytes));
    command.arg(text(configure.intake.map(u64::from))).arg(text(configure.events));
    keys::encode_limits(command, configure);
}

/// Who is to be hinted, or nothing.
fn seat(waiter: Option<Waiter>) -> String {
    waiter.map_or_else(String::new, |waiter| format!("{:x} {}", waiter.client.0, waiter.seq))
}

/// The number, or nothing. Versions and settings are at most 2^53, and never added up.
fn text(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.min(1 << 53).to_string())
}

/// Whether it is about results of tasks.
fn has_results(verb: &QueueVerb) -> bool {
    match verb {
        QueueVerb::Settle(settle) | QueueVerb::SettleAndClaim(settle, _) => {
            settle.items.iter().any(|item| matches!(item.verdict, Verdict::AckWith { .. }))
        }
        QueueVerb::Result(_) | QueueVerb::Purge => true,
        _ => false,
    }
}

/// The call whose repetition the verb has to know.
fn call_of(verb: &QueueVerb) -> Option<CallId> {
    match verb {
        QueueVerb::Enqueue(enqueue) => Some(enqueue.call),
        QueueVerb::Claim(claim) | QueueVerb::SettleAndClaim(_, claim) => Some(claim.call),
        QueueVerb::Abandon(abandon) => abandon.call,
        _ => None,
    }
}

fn encode_enqueue(command: &mut Cmd, enqueue: &Enqueue) {
    command.arg(enqueue.call.number).arg(millis(enqueue.timeout));
    for task in &*enqueue.tasks {
        command.arg(task.id.as_str()).arg(options(task)).arg(&*task.body);
    }
}

/// What is not left at its default, as enqueue_task.lua reads it; empty if that is nothing.
fn options(task: &NewTask) -> String {
    let NewTask { due, priority, max_attempts, expires, on_duplicate, key, node, .. } = task;
    let (kind, due) = encoded(*due);
    let expires = expires.map_or(0, |expires| millis(expires).max(1));
    let (policy, span) = match on_duplicate {
        OnDuplicate::Keep => ('k', 0),
        OnDuplicate::Skip => ('s', 0),
        OnDuplicate::Replace => ('r', 0),
        OnDuplicate::Debounce { max_wait } => ('d', millis(*max_wait)),
        OnDuplicate::Throttle { window } => ('t', millis(*window)),
    };
    let is_plain =
        (kind, due, *priority, *max_attempts, expires, policy) == ('i', 0, 0, INTAKE_MAX_ATTEMPTS, 0, 'k');
    if is_plain && key.is_none() && node.is_none() {
        return String::new();
    }
    let mut options = format!("{kind}{due} {priority} {max_attempts} {expires} {policy}{span}");
    if let Some(key) = key {
        options.extend([" ", key.as_str()]);
    }
    if let Some(node) = node {
        options.extend(["\n", &node.text()]);
    }
    options
}

/// Whether it counts from now ("i") or is a time ("a"), and milliseconds.
fn encoded(due: Due) -> (char, u64) {
    match due {
        Due::Now => ('i', 0),
        Due::In(delay) => ('i', millis(delay)),
        Due::At(time) => ('a', time.min(MOST)),
    }
}

fn encode_claim(command: &mut Cmd, claim: &Claim) {
    command.arg(claim.call.number).arg(claim.max).arg(millis(claim.lease));
    command.arg(name_of(claim.waiter, &claim.consumer)).arg(&*claim.consumer);
}

fn encode_settlements(command: &mut Cmd, settle: &Settle) {
    for item in &*settle.items {
        command.arg(item.id.as_str()).arg(item.receipt.get());
        match &item.verdict {
            Verdict::Ack => command.arg("a"),
            Verdict::AckWith { result, keep } => {
                command.arg([format!("a{} ", millis(*keep)).as_bytes(), result].concat())
            }
            Verdict::Nack { delay, reason } => command.arg(format!("n{} {reason}", millis(*delay))),
            Verdict::Bury { reason } => command.arg(format!("b{reason}")),
            Verdict::PutBack { delay } => command.arg(format!("p{}", millis(*delay))),
            Verdict::Throttle { time } => command.arg(format!("t{}", millis(*time))),
        };
    }
}

/// How the idle set knows a waiter.
fn name_of(waiter: Option<Waiter>, consumer: &str) -> String {
    waiter.map_or_else(String::new, |waiter| format!("{:x} {} {consumer}", waiter.client.0, waiter.seq))
}

/// Whole milliseconds, rounded up: nothing ends earlier than it was asked to.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).map_or(MOST, |millis| millis.min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::{TaskId, TaskKey};
    use crate::protocol::NodeOf;

    fn task() -> NewTask {
        NewTask {
            id: TaskId::stored(b"a"),
            body: [].into(),
            due: Due::Now,
            priority: 0,
            max_attempts: INTAKE_MAX_ATTEMPTS,
            expires: None,
            on_duplicate: OnDuplicate::Keep,
            key: None,
            node: None,
        }
    }

    #[test]
    fn a_plain_task_has_no_options() {
        assert_eq!(options(&task()), "");
        let due = Due::In(Duration::from_micros(1_500));
        assert_eq!(options(&NewTask { due, ..task() }), "i2 0 20 0 k0");
        let due = Due::At(u64::MAX);
        assert_eq!(options(&NewTask { due, priority: 9, ..task() }), "a4503599627370496 9 20 0 k0");
        let expires = Some(Duration::ZERO);
        assert_eq!(options(&NewTask { expires, max_attempts: 1, ..task() }), "i0 0 1 1 k0");
        let on_duplicate = OnDuplicate::Throttle { window: Duration::MAX };
        assert_eq!(options(&NewTask { on_duplicate, ..task() }), "i0 0 20 0 t4503599627370496");
        let node = NodeOf { flow: TaskId::stored(b"f"), node: 3, home: Some("h".into()) };
        assert_eq!(options(&NewTask { node: Some(node.clone()), ..task() }), "i0 0 20 0 k0\n3 f\nh");
        let key = Some(TaskKey::stored(b"k"));
        assert_eq!(options(&NewTask { node: Some(node), key, ..task() }), "i0 0 20 0 k0 k\n3 f\nh");
    }
}
