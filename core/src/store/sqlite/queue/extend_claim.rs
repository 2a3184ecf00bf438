//! Prolong the lease of a claim; never shortens it.

use crate::protocol::{ExtendClaim, ExtendClaimReply, Happened, QueueReply, Receipt};
use crate::store::sqlite::queue::work::Work;
use crate::store::sqlite::step::{between, micros};

/// Like extend_claim.lua.
pub(super) fn extend_claim(work: &mut Work<'_>, request: &ExtendClaim) -> rusqlite::Result<QueueReply> {
    let receipt = request.receipt;
    let reply = match work.live(request.id.as_str())? {
        None => ExtendClaimReply::Gone,
        Some(live) if receipt == Receipt::NONE || live.main.receipt != receipt => ExtendClaimReply::Stale,
        Some(live) if !live.main.is_held(work.step.now) => ExtendClaimReply::Expired,
        Some(live) if live.main.cancelled => ExtendClaimReply::Cancelled,
        Some(live) => {
            let ends = live.main.ends.max(work.step.now.saturating_add(micros(request.lease)));
            work.step.change("UPDATE task SET ends = ?2 WHERE serial = ?1", &[&live.main.serial, &ends])?;
            if let Some(progress) = &request.progress {
                let set = "UPDATE task SET progress = ?2 WHERE serial = ?1";
                work.step.change(set, &[&live.main.serial, &&**progress])?;
                work.happen(Happened::Progress, &live.main, "")?;
            }
            ExtendClaimReply::Extended(between(work.step.now, ends))
        }
    };
    Ok(QueueReply::ExtendClaim(reply))
}
