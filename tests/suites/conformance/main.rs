//! What every store promises through either face of the library. One topic per verb, then the options.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

// First: its macro is for the others too.
#[macro_use]
mod manual_clock;

mod acquire;
mod arguments;
mod break_lease;
mod cached;
mod cancel;
mod close;
mod extend;
mod flows;
mod hold;
mod holder;
mod limiter;
mod listing;
mod loss;
mod metrics;
mod multi_lock;
mod open_telemetry;
mod permits_line;
mod queue_arguments;
mod queue_change;
mod queue_claim;
mod queue_clock;
mod queue_configure;
mod queue_dead;
mod queue_enqueue;
mod queue_events;
mod queue_keys;
mod queue_lease;
mod queue_look;
mod queue_pause;
mod queue_policies;
mod queue_running;
mod queue_settle;
mod queue_stale;
mod queue_stop;
mod queue_successor;
mod queue_support;
mod queue_turns;
mod queue_waiting;
mod queue_worker;
mod read_write;
mod reentrant;
mod release;
mod resume;
mod schedules;
mod schedules_clock;
mod semaphore;
mod traces;
mod waiting;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stanchion::LockOptions;
use stanchion_tests::faces::{AnyClient, AnyLease};
use stanchion_tests::wait::{Task, task, timed};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A lease that nothing renews.
fn fixed(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl)
}

/// A lease that is renewed in good time.
fn renewed(ttl: Duration) -> LockOptions {
    LockOptions::new().ttl(ttl).renew(true)
}

/// The time as stores know it: in whole milliseconds.
fn wall() -> SystemTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is right");
    UNIX_EPOCH + Duration::from_millis(now.as_millis() as u64)
}

/// Offers last for a second: whether those that were made by then, or a little later, may be over.
fn offers_of_then_may_be_over(then: Instant) -> bool {
    then.elapsed() > ms(900)
}

/// A thread that waits for the lock.
fn waiter(client: &AnyClient, name: &str) -> Task<AnyLease> {
    let lock = client.lock(name);
    task(move || lock.acquire(LockOptions::new().wait(secs(30))).expect("the waiter's lease"))
}
