//! Read-write locks and semaphores: several holders, each with some of a lock's permits.
//!
//! Every verb does what the Lua script of the same name, with `permits_` before it, does on Redis.

mod acquire;
mod end;
mod hand_on;
mod holder;

use rusqlite::OptionalExtension;

use crate::protocol::{
    Acquire, BreakLease, Downgrade, Extend, Fence, Holder, Leave, Permits, Release, Request, Resume, Upgrade,
    Waiters,
};
use crate::store::sqlite::step::{LockRow, Performed, Step, View};
use crate::store::sqlite::waiters::waiters;

pub(super) use holder::holder;

/// Whether a request is about permits.
pub(super) fn concerns(request: &Request) -> bool {
    match request {
        Request::Acquire(Acquire { name, .. })
        | Request::Extend(Extend { name, .. })
        | Request::Release(Release { name, .. })
        | Request::Leave(Leave { name, .. })
        | Request::Resume(Resume { name, .. })
        | Request::Downgrade(Downgrade { name, .. })
        | Request::Upgrade(Upgrade { name, .. })
        | Request::Holder(Holder { name })
        | Request::Waiters(Waiters { name })
        | Request::BreakLease(BreakLease { name }) => name.kind().has_permits(),
        Request::AcquireAll(_)
        | Request::StoreValue(_)
        | Request::Invalidate(_)
        | Request::Take(_)
        | Request::GiveBack(_)
        | Request::Queue(_) => false,
    }
}

/// One verb within its transaction.
pub(super) fn perform(step: &Step<'_>, request: &Request, view: &View<'_>) -> rusqlite::Result<Performed> {
    match request {
        Request::Acquire(request) => {
            let permits = request.permits.unwrap_or(Permits { weight: 1, limit: 1 });
            acquire::acquire(step, request, permits)
        }
        Request::Extend(request) => end::extend(step, request),
        Request::Release(request) => end::release(step, request),
        Request::Leave(request) => end::leave(step, request),
        Request::Resume(request) => end::resume(step, request),
        Request::Downgrade(request) => end::downgrade(step, request),
        Request::Upgrade(request) => end::upgrade(step, request),
        Request::BreakLease(request) => end::break_lease(step, request),
        Request::Holder(request) => holder(step.connection, request, view).map(Performed::from),
        Request::Waiters(request) => waiters(step.connection, request, view).map(Performed::from),
        Request::AcquireAll(_)
        | Request::StoreValue(_)
        | Request::Invalidate(_)
        | Request::Take(_)
        | Request::GiveBack(_)
        | Request::Queue(_) => Err(rusqlite::Error::InvalidQuery),
    }
}

/// What a token has of a lock.
struct Held {
    weight: i64,
    fence: Fence,
    expires: i64,
}

/// What this token has now; `None` if its lease has ended.
fn held(step: &Step<'_>, row: &LockRow, token: &str) -> rusqlite::Result<Option<Held>> {
    step.connection
        .prepare_cached(
            "SELECT weight, fence, expires FROM permit WHERE lock = ?1 AND token = ?2 AND expires > ?3",
        )?
        .query_row((row.id, token, step.now), |row| {
            Ok(Held { weight: row.get(0)?, fence: row.get(1)?, expires: row.get(2)? })
        })
        .optional()
}

/// What all leases of a lock come to.
struct Sum {
    /// Permits that are held.
    used: i64,
    /// Whether one of them is the caller's.
    mine: bool,
    /// Whether there are leases that have ended.
    stale: bool,
}

/// One look at all leases of a lock.
fn sum(step: &Step<'_>, row: &LockRow, token: &str) -> rusqlite::Result<Sum> {
    step.connection
        .prepare_cached(
            "SELECT coalesce(sum(weight) FILTER (WHERE expires > ?2), 0),
               count(*) FILTER (WHERE expires > ?2 AND token = ?3) > 0,
               count(*) FILTER (WHERE expires <= ?2) > 0
             FROM permit WHERE lock = ?1",
        )?
        .query_row((row.id, step.now, token), |row| {
            Ok(Sum { used: row.get(0)?, mine: row.get(1)?, stale: row.get(2)? })
        })
}

/// How many permits are held now.
fn used(step: &Step<'_>, row: &LockRow) -> rusqlite::Result<i64> {
    step.connection
        .prepare_cached("SELECT coalesce(sum(weight), 0) FROM permit WHERE lock = ?1 AND expires > ?2")?
        .query_row((row.id, step.now), |row| row.get(0))
}
