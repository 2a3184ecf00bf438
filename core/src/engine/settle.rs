//! What the answer to a settlement means.

use crate::clock::Moment;
use crate::verbs::Settled;

/// Judges the answer to a settlement that came at `received`; fails with the reason why the receipt is stale.
/// `resent` says whether an earlier copy may have been carried out, and none with another verdict; `deadline`
/// until when the claim was surely the caller's.
pub fn judge_settled(
    settled: Settled,
    resent: bool,
    received: Moment,
    deadline: Moment,
) -> Result<(), &'static str> {
    match settled {
        Settled::Done { .. } => Ok(()),
        // The earlier copy settled it, since nobody else could before the deadline. Others may have had it since.
        Settled::Gone | Settled::Stale if resent && received < deadline => Ok(()),
        Settled::Gone => Err("the task is gone: it was settled, removed, or its queue purged"),
        Settled::Stale => {
            Err("the lease ended, and the task was delivered again, replaced, or settled otherwise")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_any_more_was_settled_by_an_earlier_copy_if_nobody_else_could() {
        let (before, deadline, after) = (Moment::from_nanos(1), Moment::from_nanos(5), Moment::from_nanos(6));
        let is_ok = |settled, resent, received| judge_settled(settled, resent, received, deadline).is_ok();
        assert!(is_ok(Settled::Done { late: true, dead: false }, false, after));
        assert!(is_ok(Settled::Gone, true, before));
        assert!(!is_ok(Settled::Gone, true, after), "another may have had it since");
        assert!(!is_ok(Settled::Gone, false, before), "it was removed");
        assert!(is_ok(Settled::Stale, true, before), "given back, and taken by another");
        assert!(!is_ok(Settled::Stale, true, after));
        assert!(!is_ok(Settled::Stale, false, before));
    }
}
