//! The Lua scripts: one per verb, completed with shared parts, reply codes and constants.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use crate::base::wake::locked;
use crate::protocol::CLOCK_MARGIN;
pub use crate::store::redis::code::Code;
use crate::store::redis::keys::FlowKey::{FlowNodes, FlowTimes, Flows};
use crate::store::redis::keys::Keys::{
    self, Limiter, ManyLocks, OneLock, QueueCall, QueueCallResults, QueueContents, QueueFlows, QueueResults,
    QueueSchedules, WholeQueue,
};
use crate::store::redis::keys::LockKey::{Ended, Holders, Line, Lock, Meta, Records, Value, Waiters};

mod includes;
mod values;

use includes::included;
use values::values;

/// A script ready to run.
#[derive(Debug)]
pub struct Script {
    /// Its text, for SCRIPT LOAD.
    pub text: String,
    /// Its SHA-1, for EVALSHA.
    pub sha: String,
    /// What its source calls its keys, in their order; of several locks those of the first.
    pub keys: Vec<String>,
}

macro_rules! verbs {
    ($($verb:ident $name:literal $path:literal $keys:expr,)+) => {
        /// Every verb that is a script.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $(#[doc = $path] $verb,)+
        }

        impl Verb {
            /// What its script is given.
            pub(crate) const fn keys(self) -> Keys {
                match self {
                    $(Self::$verb => $keys,)+
                }
            }

            const ALL: &[Self] = &[$(Self::$verb,)+];
        }

        const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("lua/", $path))),)+];
    };
}

// In the order of the enum: a verb is the index of its script.
verbs! {
    Acquire "acquire" "acquire.lua" OneLock(&[Lock, Meta, Line, Waiters, Ended]),
    AcquireAll "acquire_all" "acquire_all.lua" ManyLocks(&[Lock, Meta, Ended]),
    Extend "extend" "extend.lua" OneLock(&[Lock, Meta, Ended]),
    Release "release" "release.lua" OneLock(&[Lock, Meta, Line, Waiters, Ended]),
    Leave "leave" "leave.lua" OneLock(&[Lock, Meta, Line, Waiters, Ended]),
    Resume "resume" "resume.lua" OneLock(&[Lock, Meta, Ended]),
    Holder "holder" "holder.lua" OneLock(&[Lock, Meta, Line]),
    Waiters "waiters" "waiters.lua" OneLock(&[Line, Waiters]),
    BreakLease "break_lease" "break_lease.lua" OneLock(&[Lock, Meta, Line, Waiters]),
    PermitsAcquire "permits_acquire" "permits/permits_acquire.lua" OneLock(&[Holders, Meta, Line, Waiters, Records, Ended]),
    PermitsExtend "permits_extend" "permits/permits_extend.lua" OneLock(&[Holders, Meta, Records]),
    PermitsRelease "permits_release" "permits/permits_release.lua" OneLock(&[Holders, Meta, Line, Waiters, Records, Ended]),
    PermitsLeave "permits_leave" "permits/permits_leave.lua" OneLock(&[Holders, Meta, Line, Waiters, Records, Ended]),
    PermitsResume "permits_resume" "permits/permits_resume.lua" OneLock(&[Holders, Meta, Records, Ended]),
    PermitsDowngrade "permits_downgrade" "permits/permits_downgrade.lua" OneLock(&[Holders, Meta, Line, Waiters, Records]),
    PermitsUpgrade "permits_upgrade" "permits/permits_upgrade.lua" OneLock(&[Holders, Meta, Records]),
    PermitsHolder "permits_holder" "permits/permits_holder.lua" OneLock(&[Holders, Records, Line]),
    PermitsWaiters "permits_waiters" "permits/permits_waiters.lua" OneLock(&[Line, Waiters]),
    PermitsBreakLease "permits_break_lease" "permits/permits_break_lease.lua" OneLock(&[Holders, Meta, Line, Waiters, Records]),
    CachedAcquire "cached_acquire" "cached/cached_acquire.lua" OneLock(&[Lock, Meta, Line, Waiters, Ended, Value]),
    StoreValue "store_value" "cached/store_value.lua" OneLock(&[Lock, Meta, Line, Waiters, Ended, Value]),
    Invalidate "invalidate" "cached/invalidate.lua" OneLock(&[Lock, Meta, Line, Waiters, Value]),
    GcraTake "gcra_take" "limiter/gcra_take.lua" Limiter,
    GcraGiveBack "gcra_give_back" "limiter/gcra_give_back.lua" Limiter,
    FixedTake "fixed_take" "limiter/fixed_take.lua" Limiter,
    FixedGiveBack "fixed_give_back" "limiter/fixed_give_back.lua" Limiter,
    SlidingTake "sliding_take" "limiter/sliding_take.lua" Limiter,
    SlidingGiveBack "sliding_give_back" "limiter/sliding_give_back.lua" Limiter,
    Enqueue "enqueue" "queue/enqueue.lua" QueueCall,
    Claim "claim" "queue/claim.lua" QueueCall,
    Settle "settle" "queue/settle.lua" QueueResults,
    SettleAndClaim "settle_and_claim" "queue/settle_and_claim.lua" QueueCallResults,
    ExtendClaim "extend_claim" "queue/extend_claim.lua" WholeQueue,
    Abandon "abandon" "queue/abandon.lua" QueueCall,
    Pop "pop" "queue/pop.lua" WholeQueue,
    Peek "peek" "queue/peek.lua" WholeQueue,
    Get "get" "queue/get.lua" WholeQueue,
    Result "result" "queue/result.lua" QueueResults,
    List "list" "queue/list.lua" WholeQueue,
    Remove "remove" "queue/remove.lua" WholeQueue,
    Cancel "cancel" "queue/cancel.lua" WholeQueue,
    Reschedule "reschedule" "queue/reschedule.lua" WholeQueue,
    Kick "kick" "queue/kick.lua" WholeQueue,
    RemoveDead "remove_dead" "queue/remove_dead.lua" WholeQueue,
    Stats "stats" "queue/stats.lua" WholeQueue,
    Consumers "consumers" "queue/consumers.lua" WholeQueue,
    Pause "pause" "queue/pause.lua" WholeQueue,
    Purge "purge" "queue/purge.lua" QueueContents,
    Configure "configure" "queue/configure.lua" WholeQueue,
    Events "events" "queue/events.lua" WholeQueue,
    LimitKey "limit_key" "queue/limit_key.lua" WholeQueue,
    ListKeys "list_keys" "queue/list_keys.lua" WholeQueue,
    PutSchedules "put_schedules" "queue/put_schedules.lua" QueueSchedules,
    ListSchedules "list_schedules" "queue/list_schedules.lua" QueueSchedules,
    Fire "fire" "queue/fire.lua" QueueSchedules,
    PauseSchedule "pause_schedule" "queue/pause_schedule.lua" QueueSchedules,
    RemoveSchedule "remove_schedule" "queue/remove_schedule.lua" QueueSchedules,
    PutFlow "put_flow" "queue/put_flow.lua" QueueFlows(&[Flows, FlowNodes, FlowTimes]),
    ReadOutbox "read_outbox" "queue/read_outbox.lua" QueueFlows(&[Flows, FlowNodes, FlowTimes]),
    StepFlows "step_flows" "queue/step_flows.lua" QueueFlows(&[Flows, FlowNodes, FlowTimes]),
    PostMessages "post_messages" "queue/post_messages.lua" QueueFlows(&[Flows]),
    GetFlow "get_flow" "queue/get_flow.lua" QueueFlows(&[Flows]),
    ListFlows "list_flows" "queue/list_flows.lua" QueueFlows(&[Flows, FlowTimes]),
    ReadNodes "read_nodes" "queue/read_nodes.lua" QueueFlows(&[FlowNodes]),
    LostNodes "lost_nodes" "queue/lost_nodes.lua" WholeQueue,
}

macro_rules! shared {
    ($($name:literal $path:literal,)+) => {
        const SHARED: &[(&str, &str)] = &[$(($name, include_str!(concat!("lua/", $path))),)+];
    };
}

shared! {
    "foreign" "foreign.lua",
    "hand_off" "hand_off.lua",
    "line" "line.lua",
    "absence" "absence.lua",
    "end_take" "limiter/end_take.lua",
    "end_token" "end_token.lua",
    "leave_line" "leave_line.lua",
    "live_waiters" "live_waiters.lua",
    "permits_offer" "permits/permits_offer.lua",
    "permits_absence" "permits/permits_absence.lua",
    "permits_end" "permits/permits_end.lua",
    "cached_waiters" "cached/cached_waiters.lua",
    "call" "queue/call.lua",
    "cancel_task" "queue/cancel_task.lua",
    "check" "queue/check.lua",
    "check_flows" "queue/check_flows.lua",
    "claim_tasks" "queue/claim_tasks.lua",
    "count_runs" "queue/count_runs.lua",
    "dead" "queue/dead.lua",
    "die" "queue/die.lua",
    "due" "queue/due.lua",
    "end_delivery" "queue/end_delivery.lua",
    "end_lease" "queue/end_lease.lua",
    "enqueue_task" "queue/enqueue_task.lua",
    "flows" "queue/flows.lua",
    "flows_due" "queue/flows_due.lua",
    "gate" "queue/gate.lua",
    "give_again" "queue/give_again.lua",
    "happen" "queue/happen.lua",
    "held" "queue/held.lua",
    "hints" "queue/hints.lua",
    "intake" "queue/intake.lua",
    "keep" "queue/keep.lua",
    "keys" "queue/keys.lua",
    "limits" "queue/limits.lua",
    "next_walk" "queue/next_walk.lua",
    "order" "queue/order.lua",
    "outbox" "queue/outbox.lua",
    "places" "queue/places.lua",
    "promote" "queue/promote.lua",
    "promote_keys" "queue/promote_keys.lua",
    "pull" "queue/pull.lua",
    "put" "queue/put.lua",
    "rate" "queue/rate.lua",
    "record" "queue/record.lua",
    "schedule" "queue/schedule.lua",
    "sets" "queue/sets.lua",
    "results" "queue/results.lua",
    "settings" "queue/settings.lua",
    "settle_tasks" "queue/settle_tasks.lua",
    "spec" "queue/spec.lua",
    "step_nodes" "queue/step_nodes.lua",
    "succeed" "queue/succeed.lua",
    "sweep" "queue/sweep.lua",
    "take" "queue/take.lua",
    "take_in" "queue/take_in.lua",
    "take_messages" "queue/take_messages.lua",
    "task" "queue/task.lua",
    "tell" "queue/tell.lua",
    "throttle" "queue/throttle.lua",
    "trim_flows" "queue/trim_flows.lua",
    "turn" "queue/turn.lua",
    "use_keys" "queue/use_keys.lua",
    "wake" "queue/wake.lua",
    "waiters_with" "queue/waiters_with.lua",
    "walk" "queue/walk.lua",
    "widen" "queue/widen.lua",
    "write" "queue/write.lua",
    "write_events" "queue/write_events.lua",
    "write_messages" "queue/write_messages.lua",
    "write_outbox" "queue/write_outbox.lua",
    "write_results" "queue/write_results.lua",
}

/// All scripts, by verb.
#[derive(Debug)]
pub struct Scripts(Vec<Script>);

impl Scripts {
    fn with(clock_margin: Duration) -> Self {
        let values = values(clock_margin).into_iter().collect();
        let scripts = SOURCES.iter().zip(Verb::ALL);
        Self(scripts.map(|((_, source), verb)| complete(source, verb.keys(), &values)).collect())
    }

    /// The scripts of clients with this margin for clocks. They are made once, and stay.
    pub fn of(clock_margin: Duration) -> &'static Self {
        static OTHERS: Mutex<BTreeMap<Duration, &'static Scripts>> = Mutex::new(BTreeMap::new());
        if clock_margin == CLOCK_MARGIN {
            return &SCRIPTS;
        }
        let mut others = locked(&OTHERS);
        others.entry(clock_margin).or_insert_with(|| Box::leak(Box::new(Self::with(clock_margin))))
    }

    /// Every script with its verb's name.
    pub fn all(&self) -> Vec<(&'static str, &Script)> {
        SOURCES.iter().map(|(verb, _)| *verb).zip(&self.0).collect()
    }
}

impl Index<Verb> for Scripts {
    type Output = Script;

    fn index(&self, verb: Verb) -> &Script {
        &self.0[verb as usize]
    }
}

/// The completed scripts, made on first use.
pub static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts::with(CLOCK_MARGIN));

/// Puts in the shared parts, and replaces every `KEYS[@NAME]` and every other `@NAME`; drops comments and indentation.
fn complete(source: &str, keys: Keys, values: &BTreeMap<&str, String>) -> Script {
    let (text, indexes) = (included(source, part).text, keys.indexes());
    let mut pieces = text.split('@');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_at(name_length(piece));
        let index = || indexes.iter().find(|(key, _)| key == name).map(|(_, index)| index);
        match if text.ends_with("KEYS[") { index() } else { values.get(name) } {
            Some(value) => text.push_str(value),
            // A test finds it.
            None => text.extend(["@", name]),
        }
        text.push_str(rest);
    }
    let sha = redis::Script::new(&text).get_hash().to_owned();
    Script { text, sha, keys: indexes.into_iter().map(|(name, _)| name).collect() }
}

/// How long the name is that this begins with; that of a key of several locks ends with `[i]`.
fn name_length(text: &str) -> usize {
    let end = text.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(text.len());
    if text[end..].starts_with("[i]") { end + 3 } else { end }
}

/// The shared part of this name.
fn part(name: &str) -> Option<&'static str> {
    SHARED.iter().find(|(part, _)| *part == name).map(|(_, text)| &**text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_include_is_known_and_none_includes_itself() {
        for (name, source) in SOURCES.iter().chain(SHARED.iter()) {
            assert_eq!(included(source, part).wrong, [""; 0], "{name}");
        }
    }

    #[test]
    fn only_keys_that_a_script_is_given_stand_in_its_brackets() {
        let values = BTreeMap::from([("LINE", "7".to_owned()), ("LINE_TTL", "8".to_owned())]);
        let complete = |text, keys| complete(text, keys, &values).text;
        assert_eq!(complete("KEYS[@LINE] @LINE @LINE_TTL", OneLock(&[Meta, Line])), "KEYS[2] 7 8\n");
        assert_eq!(complete("KEYS[@LINE] @OTHER", OneLock(&[Meta])), "KEYS[@LINE] @OTHER\n");
        let each = "KEYS[@LOCK[i]] KEYS[@META[i]] KEYS[@ENDED[i]]";
        assert_eq!(
            complete(each, ManyLocks(&[Lock, Meta, Ended])),
            "KEYS[3 * i - 2] KEYS[3 * i - 1] KEYS[3 * i]\n"
        );
        assert_eq!(complete("KEYS[@CALL] KEYS[@INTAKE]", WholeQueue), "KEYS[@CALL] KEYS[1]\n");
        assert_eq!(complete("KEYS[@CALL]", QueueCall), "KEYS[18]\n");
        assert_eq!(complete("KEYS[@AGENDA] KEYS[@SCHEDULES]", QueueSchedules), "KEYS[18] KEYS[19]\n");
    }

    #[test]
    fn no_name_stands_for_two_things() {
        let mut names: Vec<_> = values(CLOCK_MARGIN).into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
