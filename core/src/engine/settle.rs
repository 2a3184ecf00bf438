//! The settling of a claim: which verdicts may be sent, and what their answers mean.

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::engine::loss::LossReason;
use crate::protocol::{MAX_BATCH, MAX_REQUEST_BYTES, Settled, Verdict};

/// How far the settling of a claim has come.
#[derive(Debug, Default)]
pub enum Settling {
    /// Nothing was sent.
    #[default]
    Open,
    /// Sent, and perhaps carried out: the operation, and what earlier calls had sent.
    Sent(&'static str, Earlier),
    /// Carried out.
    Settled(Verdict),
    /// The store replied that the claim is not ours any more: no earlier call was carried out.
    Refused,
}

/// What earlier calls had sent without getting a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// Nothing.
    Nothing,
    /// The same verdict.
    Same,
    /// Another verdict, or one that was refused, or cannot be carried out.
    Other,
}

impl Settling {
    /// Notes that this verdict is sent; `loss` is why the claim was lost, if it is known to be. What earlier calls had sent, or
    /// `None` if this verdict was accepted before.
    ///
    /// # Errors
    /// `StaleReceipt` if another verdict was accepted, or the run took longer than its timeout.
    pub fn send(&mut self, verdict: &Verdict, loss: Option<LossReason>) -> Result<Option<Earlier>, Error> {
        let operation = verdict.operation();
        let earlier = match self {
            Self::Settled(before) if before.operation() == operation => return Ok(None),
            Self::Settled(before) => {
                let message = format!("the claim was settled already, by {}", before.operation());
                return Err(Error::new(ErrorKind::StaleReceipt, message));
            }
            // Its keeper says so to the store: what the handler says beside that could come first.
            Self::Open if loss == Some(LossReason::TimedOut) => {
                let message = "the run took longer than its timeout, and has failed";
                return Err(Error::new(ErrorKind::StaleReceipt, message));
            }
            // The store replied that it is not ours: no copy of this verdict can be carried out.
            Self::Open if matches!(loss, Some(LossReason::Taken | LossReason::Removed)) => Earlier::Other,
            Self::Open => Earlier::Nothing,
            Self::Refused => Earlier::Other,
            Self::Sent(before, Earlier::Nothing | Earlier::Same) if *before == operation => Earlier::Same,
            Self::Sent(..) => Earlier::Other,
        };
        *self = Self::Sent(operation, earlier);
        Ok(Some(earlier))
    }

    /// Takes in what became of a settlement: `earlier` as [`Settling::send`] gave it, `resent` if an earlier copy of its call
    /// may have been carried out; the rest as of [`judge_settled`].
    ///
    /// # Errors
    /// As those of [`judge_settled`].
    pub fn settled(
        &mut self,
        verdict: &Verdict,
        (settled, earlier, resent): (Settled, Earlier, bool),
        received: Moment,
        deadline: Moment,
    ) -> Result<(), Error> {
        let resent = match (&*self, earlier) {
            // The reply to the same verdict of a clone of the claim, or of the same batch, came first.
            (Self::Settled(before), _) if before.operation() == verdict.operation() => return Ok(()),
            (Self::Refused, _) | (_, Earlier::Other) => false,
            (_, Earlier::Same) => true,
            (_, Earlier::Nothing) => resent,
        };
        let judged = judge_settled(settled, resent, received, deadline);
        match &judged {
            Ok(()) => *self = Self::Settled(verdict.clone()),
            Err(error) if error.kind() == ErrorKind::Indeterminate => {}
            Err(_) if matches!(self, Self::Settled(_)) => {}
            Err(_) => *self = Self::Refused,
        }
        judged
    }

    /// Takes in that a settlement has no answer. One that surely did nothing is as if it had never been tried.
    pub fn failed(&mut self, earlier: Earlier, error: &Error) {
        if error.kind() == ErrorKind::StoreUnavailable
            && earlier == Earlier::Nothing
            && matches!(self, Self::Sent(_, Earlier::Nothing))
        {
            *self = Self::Open;
        }
    }

    /// The verdict that was accepted, if one was.
    pub fn accepted(&self) -> Option<&Verdict> {
        match self {
            Self::Settled(verdict) => Some(verdict),
            Self::Open | Self::Sent(..) | Self::Refused => None,
        }
    }
}

/// How many verdicts of these sizes are sent in one request, from the first on: it is of bounded work, in tasks and in bytes.
pub(crate) fn part_of(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |(count, size): &(usize, usize)| {
        bytes += size;
        *count == 0 || bytes <= MAX_REQUEST_BYTES
    };
    sizes.take(MAX_BATCH).enumerate().take_while(fits).count()
}

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
    fn a_request_is_of_so_many_verdicts_and_bytes_and_of_one_in_any_case() {
        assert_eq!(part_of([].into_iter()), 0);
        assert_eq!(part_of(std::iter::repeat_n(0, 2_000)), 1_000);
        assert_eq!(part_of(std::iter::repeat_n(1 << 20, 9)), 4);
        assert_eq!(part_of([5 << 20, 0].into_iter()), 1);
        assert_eq!(part_of([0, 4 << 20, 1, 0].into_iter()), 2);
    }

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
