//! Values that one caller at a time computes. Each verb does what the Lua script of the same name does on Redis;
//! `acquire` what cached_acquire.lua does.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::protocol::{
    Acquire, AcquireReply, ClientId, Invalidate, LINE_SCAN, Reply, StoreValue, StoreValueReply, Waiter,
};
use crate::store::sqlite::acquire;
use crate::store::sqlite::hand_off::hand_off;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::step::{CLEAN_UP, Performed, Step, View, absence, micros};

struct Cached {
    value: Vec<u8>,
    fresh_until: i64,
    took: i64,
}

impl Cached {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { value: row.get(0)?, fresh_until: row.get(1)?, took: row.get(2)? })
    }

    /// Whether it is stale, or so nearly that it is to be computed anew already.
    fn is_stale(&self, now: i64, early: f64) -> bool {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "some time, drawn by lot"
        )]
        let ahead = (self.took as f64 * early) as i64;
        now.saturating_add(ahead) >= self.fresh_until
    }
}

/// The answer to an acquire that finds a fresh value, if it has nothing to change: its caller is not in line, and
/// nobody is to be woken.
pub(super) fn peek(
    connection: &Connection,
    request: &Acquire,
    view: &View<'_>,
) -> rusqlite::Result<Option<Reply>> {
    let found = connection
        .prepare_cached(
            "SELECT value, fresh_until, took FROM lock JOIN cached ON cached.lock = lock.id
             WHERE key = ?1 AND ends > ?2 AND (SELECT boot FROM store) = ?3
               AND NOT EXISTS (
                 SELECT 1 FROM waiter WHERE waiter.lock = lock.id AND (offered <> 1 OR waiter.token = ?4))",
        )?
        .query_row((row_key(&request.name), view.now, view.boot, request.token.as_str()), Cached::read)
        .optional()?;
    let fresh = found.filter(|cached| !cached.is_stale(view.now, request.early));
    Ok(fresh.map(|cached| Reply::Acquire(AcquireReply::Cached(cached.value))))
}

/// Answers with the value, or takes the lock of its computation.
pub(super) fn acquire(step: &Step<'_>, request: &Acquire) -> rusqlite::Result<Performed> {
    let Some(row) = step.lock(&row_key(&request.name))? else { return acquire::acquire(step, request) };
    let found = step
        .connection
        .prepare_cached("SELECT value, fresh_until, took FROM cached WHERE lock = ?1 AND ends > ?2")?
        .query_row((row.id, step.now), Cached::read)
        .optional()?;
    let Some(cached) = found else { return acquire::acquire(step, request) };
    let token = request.token.as_str();
    let holder = step.value(&row);
    // Whoever finds it stale computes it anew, unless another does already, or those who wait come first.
    let mine = cached.is_stale(step.now, request.early)
        && (holder == Some(token) || holder.is_none() && !anybody_waits(step, row.id)?);
    if mine {
        return acquire::acquire(step, request);
    }
    let mut wake = Vec::new();
    if row.crowded {
        step.leave_line(row.id, token)?;
        wake = wake_waiters(step, row.id)?;
    }
    Ok(Performed { reply: Reply::Acquire(AcquireReply::Cached(cached.value)), wake })
}

/// Like store_value.lua.
pub(super) fn store_value(step: &Step<'_>, request: &StoreValue) -> rusqlite::Result<Performed> {
    let row = step.lock(&row_key(&request.name))?;
    let token = request.token.as_str();
    // The lease may have ended, and the lock been offered to its token anew, for a late copy of its acquire.
    let own = row.as_ref().filter(|row| step.value(row) == Some(token) && row.fence == request.fence);
    let Some(row) = own else {
        return Ok(Reply::StoreValue(StoreValueReply::Gone(absence(row.as_ref()))).into());
    };
    forget_ended(step)?;
    let fresh_until = step.now.saturating_add(micros(request.ttl));
    step.change(
        "INSERT OR REPLACE INTO cached (lock, value, fresh_until, ends, took) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[
            &row.id,
            &&*request.value,
            &fresh_until,
            &fresh_until.saturating_add(micros(request.stale)),
            &micros(request.took),
        ],
    )?;
    step.clear(row)?;
    let wake = wake_waiters(step, row.id)?;
    if request.acquire_resent {
        step.end_token(row, token)?;
    }
    Ok(Performed { reply: Reply::StoreValue(StoreValueReply::Stored), wake })
}

/// Like invalidate.lua.
pub(super) fn invalidate(step: &Step<'_>, request: &Invalidate) -> rusqlite::Result<Performed> {
    let Some(row) = step.lock(&row_key(&request.name))? else { return Ok(Reply::Invalidate.into()) };
    step.change("DELETE FROM cached WHERE lock = ?1", &[&row.id])?;
    let mut wake = Vec::new();
    if step.value(&row).is_some() {
        step.change("UPDATE lock SET broken = ?2 WHERE id = ?1", &[&row.id, &row.fence])?;
        wake = hand_off(step, &row)?;
    }
    Ok(Performed { reply: Reply::Invalidate, wake })
}

/// Drops a few values whose time is over, of any name.
fn forget_ended(step: &Step<'_>) -> rusqlite::Result<()> {
    let over: Vec<i64> = step.few(
        "SELECT lock FROM cached WHERE ends <= ?1 ORDER BY ends LIMIT ?2",
        &[&step.now, &CLEAN_UP],
        |row| row.get(0),
    )?;
    for lock in over {
        step.change("DELETE FROM cached WHERE lock = ?1", &[&lock])?;
    }
    Ok(())
}

fn anybody_waits(step: &Step<'_>, lock: i64) -> rusqlite::Result<bool> {
    step.connection.prepare_cached("SELECT 1 FROM waiter WHERE lock = ?1 AND offered <> 1")?.exists([lock])
}

/// Tells the first of the line to ask again, a bounded number; those who do wake the next. Until then they keep
/// their entries, where clients in other processes find the hint.
fn wake_waiters(step: &Step<'_>, lock: i64) -> rusqlite::Result<Vec<Waiter>> {
    let most = i64::try_from(LINE_SCAN).unwrap_or(i64::MAX);
    let first: Vec<(i64, Waiter)> = step.few(
        "SELECT arrival, client, seq FROM waiter WHERE lock = ?1 AND offered <> 1 ORDER BY arrival LIMIT ?2",
        &[&lock, &most],
        |row| {
            let client = ClientId(row.get::<_, i64>(1)?.cast_unsigned());
            Ok((row.get(0)?, Waiter { client, seq: row.get::<_, i64>(2)?.cast_unsigned() }))
        },
    )?;
    if let Some((last, _)) = first.last() {
        step.change("UPDATE waiter SET offered = 1 WHERE lock = ?1 AND arrival <= ?2", &[&lock, last])?;
    }
    Ok(first.into_iter().map(|(_, waiter)| waiter).collect())
}
