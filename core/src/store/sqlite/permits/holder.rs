//! Who has permits. Reads only: one statement, no transaction.

use rusqlite::Connection;

use crate::protocol::{HOLDERS_MAX, HeldAs, Holder, HolderReply, Reply};
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::step::{View, between};

/// Like permits_holder.lua. Leases of an earlier boot, which no writer has cleared yet, count as ended.
pub(in crate::store::sqlite) fn holder(
    connection: &Connection,
    request: &Holder,
    view: &View<'_>,
) -> rusqlite::Result<Reply> {
    let mut statement = connection.prepare_cached(
        "SELECT permit.fence, permit.expires, permit.since, permit.owner, permit.weight,
           (SELECT count(*) FROM waiter WHERE waiter.lock = lock.id),
           EXISTS (SELECT 1 FROM waiter WHERE waiter.lock = lock.id AND waiter.token = permit.token)
         FROM lock JOIN permit ON permit.lock = lock.id
         WHERE key = ?1 AND permit.expires > ?2 AND (SELECT boot FROM store) = ?3
         ORDER BY permit.expires LIMIT ?4",
    )?;
    let most = i64::try_from(HOLDERS_MAX).unwrap_or(i64::MAX);
    let holders = statement.query_map((row_key(&request.name), view.now, view.boot, most), |row| {
        Ok(HolderReply {
            held_as: if row.get(6)? { HeldAs::Offer } else { HeldAs::Lease },
            fence: row.get(0)?,
            remaining: Some(between(view.now, row.get(1)?)),
            since_ms: number(row.get(2)?),
            owner: row.get(3)?,
            waiters: number(row.get(5)?),
            weight: u32::try_from(row.get::<_, i64>(4)?).unwrap_or(u32::MAX),
        })
    })?;
    holders.collect::<rusqlite::Result<Vec<_>>>().map(Reply::Holder)
}
