//! The Lua scripts: one per verb, completed with shared parts, reply codes and constants.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use crate::base::token::COOLDOWN_MARKER;
use crate::base::wake::locked;
use crate::protocol::{
    CACHED_RANK, CALL_TTL, CALM_LEASE, CLOCK_MARGIN, DEAD_AGE, DEAD_BYTES, DEAD_MAX, DEAD_TRIM, ENDED_SCAN,
    ENDED_TTL, EXPIRE_MAX, EXPIRED, EXPIRED_AFTER, FOREIGN_POLL, GRANT_WINDOW, HELD_SCAN, HOLDERS_MAX,
    IDLE_LIVE, INTAKE_LOOK, INTAKE_MAX_ATTEMPTS, INTAKE_SCORE_MAX, LEASE_ENDED, LINE_NEAR, LINE_SCAN,
    LINE_TTL, LIST_LOOK, MAX_REPLY_BYTES, META_REFRESH, OFFERS_MAX, PLACE_PAUSE, PLACES_PAUSE_MOST,
    PROMOTE_MAX, QUEUE_REFRESH, QUEUE_TTL, SHARE_AFTER, SHARE_PROBE, SHARE_ROW, SHARE_ROW_MOST, SHARE_WINDOW,
    SHARE_WINDOWS, SWEEP_LOOK, WAITER_LIVE, WAITERS_MAX, YEAR,
};
pub use crate::store::redis::code::Code;
use crate::store::redis::code::{HELD_AS, STATES, TASK_FIELDS, VERDICTS};

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
    PermitsUpgrade "permits_upgrade" "permits/permits_upgrade.lua",
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
    RemoveDead "remove_dead" "queue/remove_dead.lua",
    Stats "stats" "queue/stats.lua",
    Consumers "consumers" "queue/consumers.lua",
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
    "foreign" "foreign.lua",
    "hand_off" "hand_off.lua",
    "line" "line.lua",
    "absence" "absence.lua",
    "end_token" "end_token.lua",
    "leave_line" "leave_line.lua",
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
    "keep" "queue/keep.lua",
    "promote" "queue/promote.lua",
    "record" "queue/record.lua",
    "sets" "queue/sets.lua",
    "settings" "queue/settings.lua",
    "settle_tasks" "queue/settle_tasks.lua",
    "succeed" "queue/succeed.lua",
    "sweep" "queue/sweep.lua",
    "take" "queue/take.lua",
    "take_in" "queue/take_in.lua",
    "task" "queue/task.lua",
    "tell" "queue/tell.lua",
    "wake" "queue/wake.lua",
    "walk" "queue/walk.lua",
    "write" "queue/write.lua",
}

/// All scripts, by verb.
#[derive(Debug)]
pub struct Scripts(Vec<Script>);

impl Scripts {
    fn with(clock_margin: Duration) -> Self {
        let mut values = values(clock_margin);
        // Longest names first: one name may begin with another.
        values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self(SOURCES.iter().map(|(_, source)| complete(source, &values)).collect())
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

/// After this, what a queue's script does is a function of its own. A function that is made finds each name that it
/// uses by going through all those around it that are in use, but the names of an outer function at once: an
/// eighth of what a script costs before it begins.
const OUTER: &str = "-- include record.lua";

/// Puts in the shared parts and replaces every `@NAME`; drops comments and indentation.
fn complete(source: &str, values: &[(&str, String)]) -> Script {
    let (mut text, mut has_outer) = (String::new(), false);
    for line in source.lines() {
        match SHARED.iter().find(|(marker, _)| *marker == line.trim()) {
            Some((_, shared)) => shared.lines().for_each(|line| push_code(&mut text, line)),
            None => push_code(&mut text, line),
        }
        if line == OUTER {
            text.push_str("local function run()\n");
            has_outer = true;
        }
    }
    if has_outer {
        text.push_str("end\nreturn run()\n");
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

fn values(clock_margin: Duration) -> Vec<(&'static str, String)> {
    let millis = [
        // Of leases that a calm lock may give without renewing it; and beyond any other lease.
        ("META_TTL", clock_margin + META_REFRESH + CALM_LEASE),
        ("META_BEYOND", clock_margin + META_REFRESH),
        ("META_REFRESH", META_REFRESH),
        ("CALM_LEASE", CALM_LEASE),
        ("GRANT_WINDOW", GRANT_WINDOW),
        ("LIVE", WAITER_LIVE),
        ("PLACE_PAUSE", PLACE_PAUSE),
        ("PLACES_PAUSE_MOST", PLACES_PAUSE_MOST),
        ("LINE_TTL", LINE_TTL),
        ("ENDED_TTL", ENDED_TTL),
        ("SHARE_WINDOW", SHARE_WINDOW),
        ("FOREIGN_POLL", FOREIGN_POLL),
        ("SHARE_PROBE", SHARE_PROBE),
        ("SHARE_ROW_MOST", SHARE_ROW_MOST),
        ("YEAR", YEAR),
        ("QUEUE_TTL", QUEUE_TTL),
        ("QUEUE_REFRESH", QUEUE_REFRESH),
        ("CALL_TTL", CALL_TTL),
        ("IDLE_LIVE", IDLE_LIVE),
        ("DEAD_AGE", DEAD_AGE),
    ];
    let counts = [
        ("MAX_REPLY_BYTES", MAX_REPLY_BYTES),
        ("PROMOTE_MAX", PROMOTE_MAX),
        ("DEAD_TRIM", DEAD_TRIM),
        ("EXPIRE_MAX", EXPIRE_MAX),
        ("INTAKE_LOOK", INTAKE_LOOK),
        ("LIST_LOOK", LIST_LOOK),
        ("SWEEP_LOOK", SWEEP_LOOK),
        ("OFFERS_MAX", OFFERS_MAX),
        ("ENDED_SCAN", ENDED_SCAN),
        ("HELD_SCAN", HELD_SCAN),
        ("LINE_NEAR", LINE_NEAR),
        ("LINE_SCAN", LINE_SCAN),
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
    values.push(("CACHED_RANK", CACHED_RANK.to_string()));
    values.push(("SHARE_ROW", SHARE_ROW.to_string()));
    values.push(("SHARE_WINDOWS", SHARE_WINDOWS.to_string()));
    values.push(("COOLDOWN_MARKER", COOLDOWN_MARKER.to_owned()));
    values.push(("DEAD_MAX", DEAD_MAX.to_string()));
    values.push(("DEAD_BYTES", DEAD_BYTES.to_string()));
    values.push(("INTAKE_SCORE_MAX", INTAKE_SCORE_MAX.to_string()));
    values.push(("INTAKE_MAX_ATTEMPTS", INTAKE_MAX_ATTEMPTS.to_string()));
    values.push(("LEASE_ENDED", LEASE_ENDED.to_owned()));
    values.push(("EXPIRED_AFTER", EXPIRED_AFTER.to_owned()));
    values.push(("EXPIRED_REASON", EXPIRED.to_owned()));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_for_two_things() {
        let mut names: Vec<_> = values(CLOCK_MARGIN).into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
