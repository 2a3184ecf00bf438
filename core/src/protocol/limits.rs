//! How long things live and how much one call looks at: what the scripts, the transactions and the engine go by. Each
//! number stands here alone; the scripts get them by name.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How long an offered lock waits for its waiter's confirmation. Long enough for a busy process, short
/// enough that a dead waiter costs the next one little.
pub const GRANT_WINDOW: Duration = Duration::from_secs(1);
/// A waiter whose last poll is older than this counts as dead: three polls and a half. Those far back in a line poll
/// seldom: see [`further_pause`].
pub const WAITER_LIVE: Duration = Duration::from_millis(2_500);
/// So many at the head of a line poll often. As many of those behind the next one are hinted, if they have not been
/// near the head before: by their polls the line goes on if the next ones are dead.
pub const LINE_NEAR: usize = 8;
/// How much longer each one behind them may be silent than the one before it. Even where no hints arrive, and every
/// hand-over takes a poll, it has asked again before it is at the head.
pub const PLACE_PAUSE: Duration = Duration::from_millis(375);
/// How much longer than the first anybody may be silent: with the pause of the first, 20 s. 10,000 waiters are then 600
/// polls a second.
pub const PLACES_PAUSE_MOST: Duration = Duration::from_millis(19_250);
/// How long an ended token is remembered: longer than any copy of its acquire can be on its way.
pub const ENDED_TTL: Duration = Duration::from_secs(60);
/// How long a lock's record (fence, owner) outlives its last lease, unless the URL sets another: so far may a
/// store's clock go back, and fences still grow. A time server's client does not step a running clock by more than a
/// thousand seconds: it gives up.
pub const CLOCK_MARGIN: Duration = Duration::from_secs(20 * 60);
/// What the URL may set.
pub const CLOCK_MARGINS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(30 * 24 * 3600);
/// How often the record's life is renewed; doing it at every grant would cost a call each. So long a lock is calm.
pub const META_REFRESH: Duration = Duration::from_secs(60);
/// A lease that is at least as long renews the record's life in any case.
pub const CALM_LEASE: Duration = Duration::from_secs(100);
/// How long a queue's record outlives its last use.
pub const QUEUE_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often that is renewed, and how much longer than its dead a record lives.
pub const QUEUE_REFRESH: Duration = Duration::from_secs(3600);
/// How long the waiting line outlives its last poll.
pub const LINE_TTL: Duration = Duration::from_secs(60);
/// Hand-offs in a row after which a client with `foreign_share` gives other lockers a turn: mostly one of them gets in
/// then, which is a quarter of all grants.
pub const SHARE_AFTER: u32 = 2;
/// How long that turn is: twice the usual polling pause of older lockers.
pub const SHARE_WINDOW: Duration = Duration::from_millis(200);
/// Turns in a row that nobody was seen to take before they become rare: a short one is often missed.
pub const SHARE_WINDOWS: u32 = 8;
/// How often a turn is given to see whether there are other lockers: that costs a fiftieth of the time.
pub const SHARE_PROBE: Duration = Duration::from_secs(10);
/// How often the first in line asks while the value of another program's locker is in the way, give or take a third:
/// no message comes when that one is done.
pub const FOREIGN_POLL: Duration = Duration::from_millis(20);
/// So many times as long as other lockers had the lock a row of hand-offs may last: to hand it on takes longer than to
/// take it again at once, as they do.
pub const SHARE_ROW: u32 = 2;
/// Longest such row.
pub const SHARE_ROW_MOST: Duration = Duration::from_secs(10);
/// A foreign value that lives longer than this counts as never expiring.
pub const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Who waits for a value asks no more seldom than whoever has so many before it: it is served together with the first,
/// and of each client only one is in line.
pub const CACHED_RANK: u32 = 12;
/// How many waiters one call looks at.
pub const LINE_SCAN: usize = 64;
/// How many locks are taken in one step.
pub const ACQUIRE_ALL_MAX: usize = 64;
/// How many waiters are offered permits at once; each that confirms makes the store look for more.
pub const OFFERS_MAX: usize = 16;
/// How many leases that have ended one script forgets.
pub const ENDED_SCAN: usize = 64;
/// How many leases of permits one script looks at, where some have more than one permit. Each of the others counts as
/// the heaviest.
pub const HELD_SCAN: usize = 1_000;
/// How many holders of one lock are returned.
pub const HOLDERS_MAX: usize = 100;
/// How many waiters of one lock are returned.
pub const WAITERS_MAX: usize = 100;

/// How long the reply to a client's last call in a slot is kept: longer than any copy of it can be on its way. That of an
/// enqueue, which is repeated until its timeout, is kept for so much longer, and that of a claim as its lease lasts.
pub const CALL_TTL: Duration = Duration::from_secs(60);
/// Tasks in one request at most: one script must not hold up the server.
pub const MAX_BATCH: usize = 1_000;
/// Bytes of payloads in one enqueue at most, but always one task; a larger batch is sent in parts.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Bytes of payloads that one claim, pop, peek or list answers with at most, but always one task.
pub const MAX_REPLY_BYTES: usize = 1 << 20;
/// How many due tasks, ended leases or intake entries one script moves at most.
pub const PROMOTE_MAX: usize = 1_000;
/// A waiting claim whose last poll is older than this counts as gone: more than its longest pause.
pub const IDLE_LIVE: Duration = Duration::from_millis(7_500);
/// Dead records kept at most, unless the queue is configured otherwise.
pub const DEAD_MAX: u64 = 10_000;
/// How long a dead record is kept, unless the queue is configured otherwise.
pub const DEAD_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Bytes of payloads in dead records at most, unless the queue is configured otherwise.
pub const DEAD_BYTES: u64 = 256 << 20;
/// Dead records of a kind that one script drops at most.
pub const DEAD_TRIM: usize = 200;
/// Expired tasks that one script finds at most.
pub const EXPIRE_MAX: usize = 200;
/// Entries of the intake that one script looks at although there may be no room for them.
pub const INTAKE_LOOK: usize = 100;
/// Tasks that one page of a listing looks at, at most: those whose ids begin otherwise count, too.
pub const LIST_LOOK: usize = 1_000;
/// Failures of a task that are kept: the last ones.
pub const HISTORY_MAX: usize = 5;
/// Bytes of one result at most.
pub const MAX_RESULT: usize = 1 << 20;
/// Bytes of what a run says of its progress at most.
pub const MAX_PROGRESS: usize = 4 << 10;
/// Results of a queue's tasks that are kept at most.
pub const RESULTS_MAX: usize = 10_000;
/// Bytes of them at most.
pub const RESULTS_BYTES: usize = 64 << 20;
/// How long a result may be kept.
pub const RESULT_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Callers that are told of a task's end at most; the others find it when they next ask.
pub const ASKED_MAX: usize = 64;
/// Events that a queue keeps at most.
pub const EVENTS_MAX: u64 = 100_000;
/// Events in one answer at most.
pub const EVENTS_PAGE: usize = 500;
/// Dead tasks that one sweep looks at, at most.
pub const SWEEP_LOOK: usize = 1_000;
/// Keys of a queue that have limits of their own at most.
pub const KEY_LIMITS_MAX: usize = 100_000;
/// Keys that one script looks at though no task of theirs comes or goes, at most.
pub const KEY_LOOK: usize = 100;
/// Claims that are counted by their keys when a queue's first concurrency of keys is set.
pub const RUNS_MAX: usize = 5_000;
/// Tasks of a key that come into line at most when one leaves: more than one, so that it catches up when there may be more.
pub const PULL_MAX: usize = 2;
/// How much earlier than its time the next use of a rate may come, but never more than nine tenths of a gap: for who comes late by as
/// much, what is lost by waiting is made up for.
pub const RATE_SLACK: Duration = Duration::from_millis(100);
/// Who waits is told of a key that may go on within so long. Of what comes later it learns when it asks by itself.
pub const KEY_SOON: Duration = Duration::from_secs(1);
/// A rate is at most so many per millisecond: it is kept in quarters of a microsecond.
pub const RATE_MOST: u64 = 100;
/// The longest time of a rate, and what its burst may amount to.
pub const RATE_SPAN_MOST: Duration = Duration::from_secs(366 * 24 * 3600);
/// A key stands in line so many times at most.
pub const WEIGHT_MOST: u32 = 100;
/// Schedules that one request looks at or fires, and slots of one that it fires, at most.
pub const SLOTS_MAX: usize = 64;
/// Schedules that one owner has at most: one script puts them.
pub const OWNED_MAX: usize = 1_000;
/// Nodes that one request about a flow brings, tells or moves at most, and messages that one answer tells.
pub const NODES_BATCH: usize = 1_000;
/// Nodes of a flow at most.
pub const NODES_MAX: usize = 10_000;
/// How many others the nodes of a flow name at most, in all, as what they come after.
pub const EDGES_MAX: usize = 100_000;
/// Nodes of a flow that wait for all others at most.
pub const AFTER_ALL_MAX: usize = 100;
/// Bytes of the bodies of a flow's nodes at most.
pub const FLOW_BYTES: usize = 64 << 20;
/// Bytes of the results of a flow's nodes that are kept at most.
pub const FLOW_RESULTS: usize = 64 << 20;
/// How long a flow is kept after its end.
pub const FLOW_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Flows of a queue that have ended and are kept at most.
pub const FLOWS_ENDED_MAX: usize = 1_000;
/// How long the parts of a flow may take until it begins; then its id is free again.
pub const FLOW_DRAFT: Duration = Duration::from_secs(3600);
/// While a claim finds tasks it tells of the outbox only after so many messages,
pub const OUTBOX_MANY: usize = 256;
/// or so long after the last step: the steps of short tasks come many at once.
pub const OUTBOX_PAUSE: Duration = Duration::from_millis(100);
/// How often a flow of a queue is looked after, one after the other.
pub const WALK_EVERY: Duration = Duration::from_secs(1);
/// How often at most the same one is, if there are few.
pub const WALK_AGAIN: Duration = Duration::from_secs(60);
/// Bytes of bodies that one transaction of SQLite moves, writes anew with their rows, or drops, but always one body.
pub const MAX_MOVED_BYTES: i64 = 8 << 20;
/// The reason of a task whose last delivery ended without a verdict: its worker did not renew the lease.
pub(crate) const LEASE_ENDED: &str = "the lease ended";
/// The reason of a dead task that was not delivered in time, and had not failed before.
pub(crate) const EXPIRED: &str = "expired";
/// What stands before the last failure's reason otherwise.
pub(crate) const EXPIRED_AFTER: &str = "expired; before: ";
/// A priority has so many turns, as the power of two.
pub(crate) const TURN_BITS: u32 = 45;
/// A score of the intake above this is no Unix time in seconds (it is in the year 5138).
pub const INTAKE_SCORE_MAX: u64 = 100_000_000_000;
/// Attempts when none are given: with the backoff, about two days of failures.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 20;
/// What a task of the intake gets: plain ZADDs carry no options.
pub const INTAKE_MAX_ATTEMPTS: u32 = DEFAULT_MAX_ATTEMPTS;
/// How many a limiter allows at most in its time, and as a burst.
pub const LIMIT_MAX: u32 = 1_000_000;
/// The same of a sliding window, which remembers each time at which something was taken.
pub const SLIDING_MAX: u32 = 10_000;
/// In how long a time so many are allowed.
pub const LIMIT_PERIODS: RangeInclusive<Duration> = Duration::from_millis(1)..=YEAR;
/// How long one may wait for a limiter. What is stored further ahead than could be reserved is left of a clock that was
/// set back: it counts as reserved for this long, so no limiter is closed for longer.
pub const TAKE_WAIT_MOST: Duration = Duration::from_secs(3600);
/// How much longer the record of a limiter lives than it means anything. The server looks at another clock for that, which
/// stands still while it works.
pub const LIMITER_REST: Duration = Duration::from_secs(1);
/// Entries of a sliding window that one take forgets at most: it adds one.
pub const SLIDING_TRIM: u32 = 64;

/// How much longer a waiter may be silent than the first of its line, if so many are before it.
pub fn further_pause(rank: u32) -> Duration {
    let near = u32::try_from(LINE_NEAR).unwrap_or(u32::MAX);
    PLACE_PAUSE.saturating_mul(rank.saturating_add(1).saturating_sub(near)).min(PLACES_PAUSE_MOST)
}
