//! Settle, then claim, in one step.

use crate::protocol::{Claim, QueueReply, Settle};
use crate::store::sqlite::queue::call::{Heard, Stored};
use crate::store::sqlite::queue::claim::{claim_new, give_again, with_others};
use crate::store::sqlite::queue::settle;
use crate::store::sqlite::queue::work::Work;

/// Like settle_and_claim.lua. A repetition settles nothing: all of it was done by the first copy.
pub(super) fn settle_and_claim(
    work: &mut Work<'_>,
    settle: &Settle,
    claim: &Claim,
) -> rusqlite::Result<QueueReply> {
    match work.hear(claim.call)? {
        Heard::Repeated(stored) => {
            let again = give_again(work, claim, &stored)?;
            return Ok(QueueReply::SettleAndClaim(stored.settled, with_others(work, again)?));
        }
        Heard::Superseded | Heard::Abandoned => return Ok(QueueReply::Superseded),
        Heard::New => {}
    }
    let settled = settle::settle(work, settle)?;
    let reply = claim_new(work, claim)?;
    let stored = Stored { settled, ..Stored::of_claim(&reply) };
    work.remember(claim.call, Some(&stored), stored.lease(claim))?;
    Ok(QueueReply::SettleAndClaim(stored.settled, with_others(work, reply)?))
}
