//! End a claim call that nobody waits for any more.

use std::time::Duration;

use crate::protocol::{Abandon, CallId, QueueReply, Verdict};
use crate::store::sqlite::queue::call::LastCall;
use crate::store::sqlite::queue::settle;
use crate::store::sqlite::queue::work::Work;

/// Like abandon.lua.
pub(super) fn abandon(work: &mut Work<'_>, request: &Abandon) -> rusqlite::Result<QueueReply> {
    if let Some(call) = request.call {
        give_up(work, call)?;
    }
    if let Some(waiter) = request.waiter
        && !work.leave_idle(waiter)?
        && work.next_due()? == Some(Duration::ZERO)
    {
        // It had been chosen, so what it was woken for is still there.
        work.ready = true;
    }
    Ok(QueueReply::Abandon)
}

/// Puts back what the call claimed; if it has not come yet, it will do nothing.
fn give_up(work: &mut Work<'_>, call: CallId) -> rusqlite::Result<()> {
    let claims = match work.last_call(call)? {
        Some(last) if last.number > call.number => return Ok(()),
        Some(LastCall { number, reply: Some(reply) }) if number == call.number => reply.claims,
        _ => Vec::new(),
    };
    work.remember(call, None, Duration::ZERO)?;
    for (id, receipt) in claims {
        match work.live(&id)? {
            Some(live) if live.main.receipt == receipt && live.main.is_held(work.step.now) => {
                settle::accept(work, live, &Verdict::PUT_BACK)?;
            }
            _ => {}
        }
    }
    Ok(())
}
