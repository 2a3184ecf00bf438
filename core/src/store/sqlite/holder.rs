//! Who holds the lock, and which locks are held. Reads only: one statement, no transaction.

use rusqlite::{Connection, OptionalExtension};

use crate::base::name::{LockKind, LockName, Prefixes};
use crate::base::token::COOLDOWN_MARKER;
use crate::protocol::{HeldAs, Holder, HolderReply, Reply};
use crate::store::sqlite::keys;
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::step::{PAGE, View, between};

/// Like holder.lua. Leases of an earlier boot, which no writer has cleared yet, count as free.
pub(super) fn holder(connection: &Connection, request: &Holder, view: &View<'_>) -> rusqlite::Result<Reply> {
    let held = connection
        .prepare_cached(
            "SELECT token, expires, fence, since, owner,
               (SELECT count(*) FROM waiter WHERE waiter.lock = lock.id),
               EXISTS (SELECT 1 FROM waiter WHERE waiter.lock = lock.id AND waiter.token = lock.token)
             FROM lock WHERE key = ?1 AND token IS NOT NULL AND expires > ?2
               AND (SELECT boot FROM store) = ?3",
        )?
        .query_row((keys::row_key(&request.name), view.now, view.boot), |row| {
            let held_as = match (row.get_ref(0)?.as_str()?, row.get(6)?) {
                (COOLDOWN_MARKER, _) => HeldAs::Cooldown,
                (_, true) => HeldAs::Offer,
                (_, false) => HeldAs::Lease,
            };
            let leased = held_as == HeldAs::Lease;
            Ok(HolderReply {
                held_as,
                fence: row.get(2)?,
                remaining: Some(between(view.now, row.get(1)?)),
                since_ms: if leased { number(row.get(3)?) } else { 0 },
                owner: if leased { row.get(4)? } else { String::new() },
                waiters: number(row.get(5)?),
                weight: 1,
            })
        })
        .optional()?;
    Ok(Reply::Holder(held.into_iter().collect()))
}

/// One page of the names of held locks, and where the next begins; zero after the last.
pub(super) fn list(
    connection: &Connection,
    prefixes: &Prefixes,
    kind: LockKind,
    cursor: u64,
    view: &View<'_>,
) -> rusqlite::Result<(u64, Vec<LockName>)> {
    let mut statement = connection.prepare_cached(
        "SELECT id, key, (SELECT boot FROM store) = ?3 AND (token IS NOT NULL AND expires > ?2
           OR EXISTS (SELECT 1 FROM permit WHERE permit.lock = lock.id AND permit.expires > ?2))
         FROM lock WHERE id > ?1 ORDER BY id LIMIT ?4",
    )?;
    let page = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut rows = statement.query((cursor.cast_signed(), view.now, view.boot, page))?;
    let (mut seen, mut last, mut names) = (0, 0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        last = row.get::<_, i64>(0)?.cast_unsigned();
        if row.get(2)? {
            let key = keys::key_of_row(kind, row.get_ref(1)?.as_str()?);
            names.extend(key.and_then(|key| prefixes.lock_of_key(kind, key)));
        }
    }
    Ok((if seen < PAGE { 0 } else { last }, names))
}
