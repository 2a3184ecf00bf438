//! Give a key limits of its own, or take them away.

use crate::protocol::{KEY_LIMITS_MAX, LimitKey, QueueReply};
use crate::store::sqlite::queue::keys::own_limits;
use crate::store::sqlite::queue::limits::StoredRate;
use crate::store::sqlite::queue::work::Work;

/// Like limit_key.lua.
pub(super) fn limit_key(work: &mut Work<'_>, request: &LimitKey) -> rusqlite::Result<QueueReply> {
    let key = request.key.as_str();
    let before = own_limits(work.step.connection, work.key, key)?.is_some();
    let most = i64::try_from(KEY_LIMITS_MAX).unwrap_or(i64::MAX);
    if request.limits.is_some() && !before && work.limits().is_some_and(|limits| limits.keys_set >= most) {
        return Ok(QueueReply::LimitKey(false));
    }
    if before {
        work.step.change("DELETE FROM key_limit WHERE queue = ?1 AND key = ?2", &[&work.key, &key])?;
        work.limits_mut().keys_set -= 1;
    }
    if let Some(own) = request.limits {
        let rate = own.rate.map(StoredRate::new);
        work.step.change(
            "INSERT INTO key_limit (queue, key, concurrency, rate_count, rate_per, rate_burst, weight)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            &[
                &work.key,
                &key,
                &own.concurrency,
                &rate.map(|rate| rate.count),
                &rate.map_or(0, |rate| rate.per),
                &rate.map_or(0, |rate| rate.burst),
                &own.weight,
            ],
        )?;
        let limits = work.limits_mut();
        limits.keys_set += 1;
        limits.counts_runs |= own.concurrency.is_some();
    }
    work.change_key(key);
    Ok(QueueReply::LimitKey(true))
}
