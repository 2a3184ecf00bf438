//! Keys that hold tasks, and those that have limits of their own.

use rusqlite::OptionalExtension;

use crate::base::name::TaskKey;
use crate::protocol::{KEY_LOOK, KeyRecord, ListKeys, ListKeysReply, Place, QueueReply};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::keys::{KeyTime, Terms, own_limits};
use crate::store::sqlite::queue::view::Reading;

/// Like list_keys.lua.
pub(super) fn list_keys(
    reading: &Reading<'_>,
    queue: &str,
    request: &ListKeys,
) -> rusqlite::Result<QueueReply> {
    let mut reply = ListKeysReply { keys: Vec::new(), next: None };
    let (from, max) = match request {
        ListKeys::One(key) => {
            reply.keys.push(record_of(reading, queue, key.as_str())?);
            return Ok(QueueReply::ListKeys(reply));
        }
        ListKeys::Page { from, max } => (from, usize::try_from(*max).unwrap_or(usize::MAX)),
    };
    let mut after = from.as_ref().map(|place| String::from_utf8_lossy(&place.member).into_owned());
    let mut part = from.as_ref().map_or(Place::HELD, |place| place.part);
    for looked in 1..=KEY_LOOK * 2 {
        if reply.keys.len() == max || looked == KEY_LOOK * 2 {
            reply.next = after.map(|key| Place { part, score: "0".into(), member: key.into_bytes().into() });
            break;
        }
        match next_key(reading, queue, part, after.as_deref().unwrap_or_default())? {
            Some(key) => {
                if part == Place::HELD || !holds(reading, &key)? {
                    reply.keys.push(record_of(reading, queue, &key)?);
                }
                after = Some(key);
            }
            None if part == Place::LIMITED => break,
            None => (part, after) = (Place::LIMITED, Some(String::new())),
        }
    }
    Ok(QueueReply::ListKeys(reply))
}

fn next_key(reading: &Reading<'_>, queue: &str, part: u8, after: &str) -> rusqlite::Result<Option<String>> {
    if part == Place::HELD {
        let sql = "SELECT key FROM task WHERE queue = ?1 AND state = 3 AND parked = 0 AND key > ?2 ORDER BY key LIMIT 1";
        return reading
            .connection
            .prepare_cached(sql)?
            .query_row((reading.record.id, after), |row| row.get(0))
            .optional();
    }
    let sql = "SELECT key FROM key_limit WHERE queue = ?1 AND key > ?2 ORDER BY key LIMIT 1";
    reading.connection.prepare_cached(sql)?.query_row((queue, after), |row| row.get(0)).optional()
}

fn holds(reading: &Reading<'_>, key: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM task WHERE queue = ?1 AND key = ?2 AND state = 3 AND parked = 0";
    reading.connection.prepare_cached(sql)?.exists((reading.record.id, key))
}

fn record_of(reading: &Reading<'_>, queue: &str, key: &str) -> rusqlite::Result<KeyRecord> {
    let count = |sql: &str| {
        let key = (reading.record.id, key);
        reading.connection.prepare_cached(sql)?.query_row(key, |row| row.get(0).map(number))
    };
    let own = own_limits(reading.connection, queue, key)?;
    let limits = reading.limits.clone().unwrap_or_default();
    let terms = Terms::of(own, limits.key_concurrency, limits.key_rate);
    let time = KeyTime::find(reading.connection, reading.record.id, key)?;
    Ok(KeyRecord {
        key: TaskKey::stored(key.as_bytes()),
        running: count(
            "SELECT count(*) FROM task WHERE queue = ?1 AND key = ?2 AND state = 2 AND key <> ''",
        )?,
        in_line: count(
            "SELECT count(*) FROM task WHERE queue = ?1 AND key = ?2 AND state = 1 AND key <> ''",
        )?,
        held: count("SELECT count(*) FROM task WHERE queue = ?1 AND key = ?2 AND state = 3 AND parked = 0")?,
        opens: time.opens(&terms, reading.wall),
        limits: own,
    })
}
