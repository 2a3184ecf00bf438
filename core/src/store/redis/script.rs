//! The Lua scripts: one per verb, completed with shared parts, reply codes and constants.

use std::ops::Index;
use std::sync::LazyLock;

pub use crate::store::redis::code::Code;
use crate::store::redis::code::{HELD_AS, STATES, TASK_FIELDS, VERDICTS};
use crate::store::{
    CALL_TTL, DEAD_AGE, DEAD_BYTES, DEAD_MAX, DEAD_TRIM, ENDED_SCAN, ENDED_TTL, GRANT_WINDOW, HOLDERS_MAX,
    IDLE_LIVE, INTAKE_MAX_ATTEMPTS, INTAKE_SCORE_MAX, LINE_TTL, MAX_REPLY_BYTES, META_REFRESH, META_TTL,
    OFFERS_MAX, PROMOTE_MAX, SHARE_AFTER, SHARE_WINDOW, WAITER_LIVE, WAITERS_MAX, YEAR,
};
use crate::token::COOLDOWN_MARKER;

/// Why a task is dead or waits again whose worker was not heard of.
const LEASE_ENDED: &str = "the lease ended";

/// A script ready to run.
#[derive(Debug)]
pub struct Script {
    /// Its text, for SCRIPT LOAD.
    pub text: String,
    /// Its SHA-1, for EVALSHA.
    pub sha: String,
}

macro_rules! verbs {
    ($($verb:ident $name:literal $path:literal,)+) => {
        /// Every verb that is a script.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $(#[doc = $path] $verb,)+
        }

        const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("lua/", $path))),)+];
    };
}

// In the order of the enum: a verb is the index of its script.
verbs! {
    Acquire "acquire" "acquire.lua",
    AcquireAll "acquire_all" "acquire_all.lua",
    Extend "extend" "extend.lua",
    Release "release" "release.lua",
    Leave "leave" "leave.lua",
    Resume "resume" "resume.lua",
    Holder "holder" "holder.lua",
    Waiters "waiters" "waiters.lua",
    BreakLease "break_lease" "break_lease.lua",
    PermitsAcquire "permits_acquire" "permits/permits_acquire.lua",
    PermitsExtend "permits_extend" "permits/permits_extend.lua",
    PermitsRelease "permits_release" "permits/permits_release.lua",
    PermitsLeave "permits_leave" "permits/permits_leave.lua",
    PermitsResume "permits_resume" "permits/permits_resume.lua",
    PermitsDowngrade "permits_downgrade" "permits/permits_downgrade.lua",
    PermitsHolder "permits_holder" "permits/permits_holder.lua",
    PermitsWaiters "permits_waiters" "permits/permits_waiters.lua",
    PermitsBreakLease "permits_break_lease" "permits/permits_break_lease.lua",
    CachedAcquire "cached_acquire" "cached/cached_acquire.lua",
    StoreValue "store_value" "cached/store_value.lua",
    Invalidate "invalidate" "cached/invalidate.lua",
    Enqueue "enqueue" "queue/enqueue.lua",
    Claim "claim" "queue/claim.lua",
    Settle "settle" "queue/settle.lua",
    SettleAndClaim "settle_and_claim" "queue/settle_and_claim.lua",
    ExtendClaim "extend_claim" "queue/extend_claim.lua",
    Abandon "abandon" "queue/abandon.lua",
    Pop "pop" "queue/pop.lua",
    Peek "peek" "queue/peek.lua",
    Get "get" "queue/get.lua",
    List "list" "queue/list.lua",
    Remove "remove" "queue/remove.lua",
    Reschedule "reschedule" "queue/reschedule.lua",
    Kick "kick" "queue/kick.lua",
    Stats "stats" "queue/stats.lua",
    Pause "pause" "queue/pause.lua",
    Purge "purge" "queue/purge.lua",
    Configure "configure" "queue/configure.lua",
}

macro_rules! shared {
    ($($name:literal $path:literal,)+) => {
        const SHARED: &[(&str, &str)] =
            &[$((concat!("-- include ", $name, ".lua"), include_str!(concat!("lua/", $path))),)+];
    };
}

shared! {
    "hand_off" "hand_off.lua",
    "absence" "absence.lua",
    "end_token" "end_token.lua",
    "live_waiters" "live_waiters.lua",
    "permits_offer" "permits/permits_offer.lua",
    "permits_absence" "permits/permits_absence.lua",
    "permits_end" "permits/permits_end.lua",
    "cached_waiters" "cached/cached_waiters.lua",
    "call" "queue/call.lua",
    "check" "queue/check.lua",
    "claim_tasks" "queue/claim_tasks.lua",
    "dead" "queue/dead.lua",
    "die" "queue/die.lua",
    "due" "queue/due.lua",
    "end_delivery" "queue/end_delivery.lua",
    "end_lease" "queue/end_lease.lua",
    "enqueue_task" "queue/enqueue_task.lua",
    "intake" "queue/intake.lua",
    "promote" "queue/promote.lua",
    "record" "queue/record.lua",
    "settings" "queue/settings.lua",
    "settle_tasks" "queue/settle_tasks.lua",
    "take" "queue/take.lua",
    "take_in" "queue/take_in.lua",
    "task" "queue/task.lua",
    "tell" "queue/tell.lua",
    "tell_many" "queue/tell_many.lua",
    "wake" "queue/wake.lua",
    "write" "queue/write.lua",
}

/// All scripts, by verb.
#[derive(Debug)]
pub struct Scripts(Vec<Script>);

impl Scripts {
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
pub static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| {
    let mut values = values();
    // Longest names first: one name may begin with another.
    values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    Scripts(SOURCES.iter().map(|(_, source)| complete(source, &values)).collect())
});

/// Puts in the shared parts and replaces every `@NAME`; drops comments and indentation.
fn complete(source: &str, values: &[(&str, String)]) -> Script {
    let mut text = String::new();
    for line in source.lines() {
        match SHARED.iter().find(|(marker, _)| *marker == line.trim()) {
            Some((_, shared)) => shared.lines().for_each(|line| push_code(&mut text, line)),
            None => push_code(&mut text, line),
        }
    }
    for (name, value) in values {
        text = text.replace(&format!("@{name}"), value);
    }
    let sha = redis::Script::new(&text).get_hash().to_owned();
    Script { text, sha }
}

fn push_code(text: &mut String, line: &str) {
    let line = line.trim();
    if !line.is_empty() && !line.starts_with("--") {
        text.push_str(line);
        text.push('\n');
    }
}

fn values() -> Vec<(&'static str, String)> {
    let millis = [
        ("META_TTL", META_TTL),
        ("META_REFRESH", META_REFRESH),
        ("GRANT_WINDOW", GRANT_WINDOW),
        ("LIVE", WAITER_LIVE),
        ("LINE_TTL", LINE_TTL),
        ("ENDED_TTL", ENDED_TTL),
        ("SHARE_WINDOW", SHARE_WINDOW),
        ("YEAR", YEAR),
        ("QUEUE_TTL", META_TTL),
        ("CALL_TTL", CALL_TTL),
        ("IDLE_LIVE", IDLE_LIVE),
        ("DEAD_AGE", DEAD_AGE),
    ];
    let counts = [
        ("MAX_REPLY_BYTES", MAX_REPLY_BYTES),
        ("PROMOTE_MAX", PROMOTE_MAX),
        ("DEAD_TRIM", DEAD_TRIM),
        ("OFFERS_MAX", OFFERS_MAX),
        ("ENDED_SCAN", ENDED_SCAN),
        ("HOLDERS_MAX", HOLDERS_MAX),
        ("WAITERS_MAX", WAITERS_MAX),
    ];
    let mut values: Vec<_> =
        millis.iter().map(|(name, time)| (*name, time.as_millis().to_string())).collect();
    values.extend(counts.map(|(name, count)| (name, count.to_string())));
    values.extend(Code::ALL.iter().map(|(name, code)| (*name, (*code as i64).to_string())));
    values.extend(HELD_AS.iter().map(|(name, number, _)| (*name, number.to_string())));
    values.extend(STATES.iter().map(|(name, number, _)| (*name, number.to_string())));
    values.extend(VERDICTS.iter().map(|(name, number)| (*name, number.to_string())));
    values.extend(TASK_FIELDS.iter().map(|(name, place)| (*name, place.to_string())));
    values.push(("SHARE_AFTER", SHARE_AFTER.to_string()));
    values.push(("COOLDOWN_MARKER", COOLDOWN_MARKER.to_owned()));
    values.push(("DEAD_MAX", DEAD_MAX.to_string()));
    values.push(("DEAD_BYTES", DEAD_BYTES.to_string()));
    values.push(("INTAKE_SCORE_MAX", INTAKE_SCORE_MAX.to_string()));
    values.push(("INTAKE_MAX_ATTEMPTS", INTAKE_MAX_ATTEMPTS.to_string()));
    values.push(("LEASE_ENDED", LEASE_ENDED.to_owned()));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_for_two_things() {
        let mut names: Vec<_> = values().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
