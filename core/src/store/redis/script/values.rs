//! What `@NAME` stands for in a script: reply codes, places in records, and the constants that Rust and Lua have in
//! common.

use std::time::Duration;

use crate::base::name::MAX_NAME_BYTES;
use crate::base::token::{self, COOLDOWN_MARKER};
use crate::protocol::{
    ASKED_MAX, CACHED_RANK, CALL_TTL, CALM_LEASE, DEAD_AGE, DEAD_BYTES, DEAD_MAX, DEAD_TRIM, ENDED_SCAN,
    ENDED_TTL, EVENTS_PAGE, EXPIRE_MAX, EXPIRED, EXPIRED_AFTER, FLOW_AGE, FLOW_DRAFT, FLOW_RESULTS,
    FLOWS_ENDED_MAX, FOREIGN_POLL, GRANT_WINDOW, HELD_SCAN, HISTORY_MAX, HOLDERS_MAX, Happened, IDLE_LIVE,
    INTAKE_LOOK, INTAKE_MAX_ATTEMPTS, INTAKE_SCORE_MAX, KEY_LIMITS_MAX, KEY_LOOK, KEY_SOON, LEASE_ENDED,
    LIMITER_REST, LINE_NEAR, LINE_SCAN, LINE_TTL, LIST_LOOK, MAX_MOVED_BYTES, MAX_REPLY_BYTES, META_REFRESH,
    NEVER, NODES_BATCH, NodeEvent, OFFERS_MAX, OUTBOX_MANY, OUTBOX_PAUSE, PLACE_PAUSE, PLACES_PAUSE_MOST,
    PROMOTE_MAX, PULL_MAX, QUEUE_REFRESH, QUEUE_TTL, RATE_SLACK, RESULTS_BYTES, RESULTS_MAX, RUNS_MAX,
    SHARE_AFTER, SHARE_PROBE, SHARE_ROW, SHARE_ROW_MOST, SHARE_WINDOW, SHARE_WINDOWS, SLIDING_TRIM,
    SWEEP_LOOK, TAKE_WAIT_MOST, TURN_BITS, WAITER_LIVE, WAITERS_MAX, WALK_AGAIN, WALK_EVERY, YEAR,
};
use crate::store::redis::code::{
    Code, FLOW_BASE, FLOW_FIELDS, FLOWS_TRIM, FORGET_BASE, HELD_AS, KEY_FIELDS, LIMIT_FIELDS, MESSAGE_FIELDS,
    NODE_FIELDS, NUMBER_BITS, OUTBOX_FIELDS, OWN_FIELDS, PARTS, SCHEDULE_FIELDS, STATES, TASK_FIELDS,
    VERDICTS, WATCH_FIELDS,
};
use crate::store::redis::keys::CHANNELS;

/// How many values one command is given at most: Lua's stack has room for 8,000.
const CHUNK: usize = 1_000;

/// Constants that the scripts know by the same name, as text.
macro_rules! texts {
    ($($constant:ident)+) => { [$((stringify!($constant), $constant.to_string()),)+] };
}

/// The same of times: in milliseconds.
macro_rules! millis {
    ($($time:ident)+) => { [$((stringify!($time), millis($time)),)+] };
}

/// Every name with its value.
pub(super) fn values(clock_margin: Duration) -> Vec<(&'static str, String)> {
    let mut values = Vec::from(texts! {
        ASKED_MAX CACHED_RANK CHANNELS CHUNK COOLDOWN_MARKER DEAD_BYTES DEAD_MAX DEAD_TRIM ENDED_SCAN EVENTS_PAGE EXPIRED_AFTER EXPIRE_MAX
        FLOW_BASE FLOW_RESULTS FLOWS_ENDED_MAX FLOWS_TRIM FORGET_BASE HELD_SCAN HISTORY_MAX HOLDERS_MAX INTAKE_LOOK INTAKE_MAX_ATTEMPTS INTAKE_SCORE_MAX KEY_LIMITS_MAX KEY_LOOK LEASE_ENDED LINE_NEAR LINE_SCAN
        LIST_LOOK MAX_MOVED_BYTES MAX_REPLY_BYTES NEVER NODES_BATCH NUMBER_BITS OFFERS_MAX OUTBOX_MANY PROMOTE_MAX PULL_MAX RESULTS_BYTES RESULTS_MAX RUNS_MAX SHARE_AFTER SHARE_ROW SHARE_WINDOWS SLIDING_TRIM SWEEP_LOOK
        TURN_BITS WAITERS_MAX
    });
    values.extend(millis! {
        CALL_TTL CALM_LEASE DEAD_AGE ENDED_TTL FLOW_AGE FLOW_DRAFT FOREIGN_POLL GRANT_WINDOW IDLE_LIVE LIMITER_REST LINE_TTL META_REFRESH
        OUTBOX_PAUSE PLACE_PAUSE PLACES_PAUSE_MOST QUEUE_REFRESH QUEUE_TTL SHARE_PROBE SHARE_ROW_MOST SHARE_WINDOW WALK_AGAIN WALK_EVERY
        YEAR
    });
    values.extend([
        // Of leases that a calm lock may give without renewing it; and beyond any other lease.
        ("META_TTL", millis(clock_margin + META_REFRESH + CALM_LEASE)),
        ("META_BEYOND", millis(clock_margin + META_REFRESH)),
        ("LIVE", millis(WAITER_LIVE)),
        // In microseconds, as all times of limiters.
        ("TAKE_WAIT_MOST", TAKE_WAIT_MOST.as_micros().to_string()),
        ("EXPIRED_REASON", EXPIRED.to_owned()),
        ("ID_MOST", MAX_NAME_BYTES.to_string()),
        ("PRIORITY_MOST", u8::MAX.to_string()),
        ("TOKEN_BEGINS", token::FAR_FUTURE.to_owned()),
        ("TOKEN_LENGTH", token::LENGTH.to_string()),
        // Of so many the last, counted from zero.
        ("LINE_LAST", (LINE_SCAN - 1).to_string()),
        ("RATE_SLACK", RATE_SLACK.as_micros().to_string()),
        ("KEY_SOON", KEY_SOON.as_millis().to_string()),
        ("CHUNK_REST", (CHUNK - 1).to_string()),
    ]);
    values.extend(Code::ALL.iter().map(|(name, code)| (*name, (*code as i64).to_string())));
    values.extend(HELD_AS.iter().map(|(name, number, _)| (*name, number.to_string())));
    values.extend(PARTS.iter().map(|(name, number)| (*name, number.to_string())));
    values.extend(STATES.iter().map(|(name, number, _)| (*name, number.to_string())));
    values.extend(VERDICTS.iter().map(|(name, number)| (*name, number.to_string())));
    values.extend(Happened::ALL.iter().map(|(name, what)| (*name, (*what as u64).to_string())));
    values.extend(NodeEvent::ALL.iter().map(|(name, number, _)| (*name, number.to_string())));
    let of_flows = [OUTBOX_FIELDS, MESSAGE_FIELDS, FLOW_FIELDS, NODE_FIELDS];
    let fields = [TASK_FIELDS, SCHEDULE_FIELDS, WATCH_FIELDS, LIMIT_FIELDS, KEY_FIELDS, OWN_FIELDS];
    let fields = [&fields.concat()[..], &of_flows.concat()].concat();
    values.extend(fields.iter().map(|(name, place)| (*name, place.to_string())));
    values
}

fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}
