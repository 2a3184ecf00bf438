//! Say how claims ended.

use std::time::Duration;

use crate::protocol::{Happened, NodeEvent, Receipt, Settle, Settled, Settlement, Verdict, Version};
use crate::store::sqlite::queue::history::History;
use crate::store::sqlite::queue::record::How;
use crate::store::sqlite::queue::task::{Live, verdict_number};
use crate::store::sqlite::queue::work::Work;

/// Like settle.lua.
pub(super) fn settle(work: &mut Work<'_>, request: &Settle) -> rusqlite::Result<Vec<Settled>> {
    let settled = request.items.iter().map(|item| one(work, item)).collect();
    work.write_keys(0)?;
    settled
}

fn one(work: &mut Work<'_>, item: &Settlement) -> rusqlite::Result<Settled> {
    let receipt = item.receipt;
    match work.live(item.id.as_str())? {
        // Zero stands for "none" in a task, so it is nobody's receipt.
        Some(live) if receipt != Receipt::NONE && live.main.receipt == receipt => {
            accept(work, live, &item.verdict)
        }
        Some(live) if live.main.settled == receipt => {
            let same = live.main.verdict == verdict_number(&item.verdict);
            Ok(if same { Settled::Done { late: false, dead: false } } else { Settled::Stale })
        }
        live => settle_dead(work, item, live.is_some()),
    }
}

/// The receipt is that of the delivery that is not settled yet.
pub(super) fn accept(work: &mut Work<'_>, live: Live, verdict: &Verdict) -> rusqlite::Result<Settled> {
    let mut live = live;
    let late = !live.main.is_held(work.step.now);
    let receipt = live.main.spend(verdict_number(verdict));
    let mut dead = false;
    if let Verdict::Throttle { time } = verdict {
        throttle(work, &live, work.after(*time))?;
    }
    match verdict {
        Verdict::Nack { .. } | Verdict::Bury { .. } | Verdict::PutBack { .. } | Verdict::Throttle { .. }
            if live.main.cancelled =>
        {
            work.end_cancelled(live)?;
        }
        Verdict::Ack | Verdict::AckWith { .. } => {
            work.record.acked += 1;
            work.happen(Happened::Done, &live.main, "")?;
            if live.main.version.get() > receipt.get() {
                // Late, and it was asked for again since: that is yet to be done.
                (live.main.attempts, live.main.reason) = (0, "".into());
                live.main.history = History::default();
                work.update(&live.main, live.main.state)?;
            } else {
                keep_result(work, &live.main.id, live.main.version, verdict)?;
                work.end_node(&live.main.node, NodeEvent::Done, result_of(verdict))?;
                work.succeed(live)?;
            }
        }
        Verdict::Nack { delay, reason } => {
            live.main.history.add(work.now_ms, reason);
            if live.main.attempts >= live.main.max_attempts {
                dead = true;
                work.die(live, reason, receipt, How::Failed)?;
            } else {
                work.record.retried += 1;
                work.happen(Happened::Failed, &live.main, reason)?;
                live.main.reason = reason.clone();
                // A failure begins a new burst of debounces.
                live.main.first = work.now_ms;
                live.main.due = work.after(*delay);
                live.main.backoff = live.main.due;
                work.retry(live, None)?;
            }
        }
        Verdict::Bury { reason } => {
            dead = true;
            live.main.history.add(work.now_ms, reason);
            work.die(live, reason, receipt, How::Failed)?;
        }
        Verdict::Throttle { .. } => put_back(work, live, Duration::ZERO)?,
        Verdict::PutBack { delay } => put_back(work, live, *delay)?,
    }
    Ok(Settled::Done { late, dead })
}

/// Nothing more of its key is given out before then; of a task without one, nothing of the queue.
fn throttle(work: &mut Work<'_>, live: &Live, until: i64) -> rusqlite::Result<()> {
    if !live.main.key.is_empty() {
        return work.hold_key(&live.main.key, until);
    }
    let limits = work.limits_mut();
    limits.held_until = limits.held_until.max(until);
    Ok(())
}

/// The attempt does not count.
fn put_back(work: &mut Work<'_>, mut live: Live, delay: Duration) -> rusqlite::Result<()> {
    work.happen(Happened::PutBack, &live.main, "")?;
    live.main.attempts = live.main.attempts.saturating_sub(1);
    let place = delay.is_zero().then(|| live.main.stand());
    if place.is_none() {
        live.main.due = work.after(delay);
        live.main.backoff = live.main.due;
    }
    work.retry(live, place)
}

/// No live task has this receipt; perhaps a dead one.
fn settle_dead(work: &mut Work<'_>, item: &Settlement, lives: bool) -> rusqlite::Result<Settled> {
    let Some(grave) = work.grave(&item.id, item.receipt)? else {
        return Ok(if lives { Settled::Stale } else { Settled::Gone });
    };
    if grave.by_lease && matches!(item.verdict, Verdict::Ack | Verdict::AckWith { .. }) {
        work.record.acked += 1;
        work.happen_to(Happened::Done, item.id.as_str(), grave.version, grave.attempts, "")?;
        keep_result(work, item.id.as_str(), grave.version, &item.verdict)?;
        work.end_node(&grave.node, NodeEvent::Done, result_of(&item.verdict))?;
        work.forget_dead(grave.serial, grave.size, grave.expired)?;
        return Ok(Settled::Done { late: true, dead: false });
    }
    let same = grave.verdict == verdict_number(&item.verdict);
    Ok(if same { Settled::Done { late: false, dead: true } } else { Settled::Stale })
}

fn keep_result(work: &mut Work<'_>, id: &str, version: Version, verdict: &Verdict) -> rusqlite::Result<()> {
    match verdict {
        Verdict::AckWith { result, keep } => work.keep_result(id, version, work.after(*keep), result),
        _ => Ok(()),
    }
}

fn result_of(verdict: &Verdict) -> Option<&[u8]> {
    match verdict {
        Verdict::AckWith { result, .. } => Some(result),
        _ => None,
    }
}
