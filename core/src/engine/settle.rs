//! What the answer to a settlement means.

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::protocol::Settled;

/// Judges the reply to a settlement that came at `received`. `resent`: whether an earlier copy may have been
/// carried out, and none with another verdict; `deadline` until when the claim was surely the caller's.
///
/// # Errors
/// `StaleReceipt` if it was not carried out; `Indeterminate` if an earlier copy may have been, and others may have had
/// the task since.
pub fn judge_settled(
    settled: Settled,
    resent: bool,
    received: Moment,
    deadline: Moment,
) -> Result<(), Error> {
    let message = match settled {
        Settled::Done { .. } => return Ok(()),
        // The earlier copy settled it, since nobody else could before the deadline.
        Settled::Gone | Settled::Stale if resent && received < deadline => return Ok(()),
        Settled::Gone | Settled::Stale if resent => {
            let message =
                "the lease ended before the store answered: an earlier copy may or may not have settled it";
            return Err(Error::new(ErrorKind::Indeterminate, message));
        }
        Settled::Gone => "the task is gone: it was settled, removed, or its queue purged",
        Settled::Stale => "the lease ended, and the task was delivered again, replaced, or settled otherwise",
    };
    Err(Error::new(ErrorKind::StaleReceipt, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_any_more_was_settled_by_an_earlier_copy_if_nobody_else_could() {
        let (before, deadline, after) = (Moment::from_nanos(1), Moment::from_nanos(5), Moment::from_nanos(6));
        let judged = |settled, resent, received| {
            judge_settled(settled, resent, received, deadline).map_err(|error| error.kind())
        };
        let (stale, doubt) = (Err(ErrorKind::StaleReceipt), Err(ErrorKind::Indeterminate));
        assert_eq!(judged(Settled::Done { late: true, dead: false }, false, after), Ok(()));
        assert_eq!(judged(Settled::Gone, true, before), Ok(()));
        assert_eq!(judged(Settled::Gone, true, deadline), doubt, "another may have had it since");
        assert_eq!(judged(Settled::Gone, false, before), stale, "it was removed");
        assert_eq!(judged(Settled::Stale, true, before), Ok(()), "given back, and taken by another");
        assert_eq!(judged(Settled::Stale, true, after), doubt);
        assert_eq!(judged(Settled::Stale, false, before), stale);
    }
}
