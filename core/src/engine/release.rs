//! What the reply to `release` means for the lease that ended.

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::engine::call::Answer;
use crate::protocol::{Absence, CLOCK_MARGIN, Fence, ReleaseReply, Reply, StoreValueReply};

/// Who may hold a lock beside a lease of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Nobody: a later grant proves that the lease had ended.
    Alone,
    /// Other readers, or other users of a semaphore: a later grant proves nothing.
    Shared,
}

/// Judges the answer to a release, or to a value that was stored with it: `Ok` if the lease was ours until then, the truth otherwise.
pub fn judge_release(answer: &Answer, fence: Fence, company: Company, deadline: Moment) -> Result<(), Error> {
    match &answer.reply {
        Reply::Release(ReleaseReply::Released) => Ok(()),
        Reply::Release(ReleaseReply::Gone(absence)) => {
            judge_absence(answer, absence, fence, company, deadline)
        }
        Reply::StoreValue(StoreValueReply::Stored) => Ok(()),
        Reply::StoreValue(StoreValueReply::Gone(absence)) => {
            judge_absence(answer, absence, fence, company, deadline)
        }
        _ => Err(Error::unexpected_reply()),
    }
}

/// The error of a release without a reply. If the lease had run out when it was made, the loss is known, whatever the
/// reply would have been. Otherwise nothing is known but the failure.
pub fn judge_unanswered(released: Moment, deadline: Moment, failure: Error) -> Error {
    if released < deadline {
        return failure;
    }
    let message = format!(
        "the lease expired before it was released; cannot tell whether another holder got the lock since: {failure}"
    );
    Error::new(ErrorKind::LeaseExpired, message)
}

fn judge_absence(
    answer: &Answer,
    absence: &Absence,
    fence: Fence,
    company: Company,
    deadline: Moment,
) -> Result<(), Error> {
    let broken_in_time = answer.received < deadline && answer.copies == 1;
    // The store forgets a lock this long after its last lease: then an absent record means nothing.
    let unknown = *absence == Absence::default() && answer.first_sent >= deadline + CLOCK_MARGIN;
    match known_loss(absence, fence, company).filter(|_| !unknown) {
        Some(_) if company == Company::Shared && absence.broken >= fence && !broken_in_time => {
            return Err(ended_before_a_break());
        }
        Some(error) => return Err(error),
        None => {}
    }
    if answer.received < deadline && answer.copies == 1 {
        // No other copy can have ended it: something else did before us.
        return Err(taken_away(absence, fence, company));
    }
    if answer.received < deadline {
        // Nobody else can have ended it so early: an earlier copy of this release did.
        return Ok(());
    }
    if answer.first_sent < deadline {
        return Err(Error::new(
            ErrorKind::Indeterminate,
            "the lease expired while it was being released; cannot tell whether it was released or lost",
        ));
    }
    Err(if company == Company::Alone && absence.fence > fence {
        Error::new(ErrorKind::LeaseLost, "the lease expired, and another holder got the lock")
    } else {
        Error::new(ErrorKind::LeaseExpired, "the lease expired before it was released")
    })
}

/// A loss that the store's record proves, whenever it is asked.
pub(crate) fn known_loss(absence: &Absence, fence: Fence, company: Company) -> Option<Error> {
    if is_forgotten(absence, fence) {
        return Some(Error::new(
            ErrorKind::LeaseLost,
            "the store has forgotten the lease (flushed or restarted)",
        ));
    }
    // Of several holders, `break_lease` ends all, and notes the last fence of all.
    if absence.broken == fence || company == Company::Shared && absence.broken > fence {
        return Some(Error::new(ErrorKind::LeaseLost, "the lease was broken by break_lease"));
    }
    (absence.broken > fence).then(ended_before_a_break)
}

fn ended_before_a_break() -> Error {
    Error::new(ErrorKind::Indeterminate, "the lease has ended: cannot tell whether it expired or was broken")
}

/// Whether the store's record is not the one that this fence was granted from: it was lost, or is older.
pub(crate) fn is_forgotten(absence: &Absence, fence: Fence) -> bool {
    absence.born > fence || absence.fence < fence
}

/// The error for a key that was no longer ours although our time was not over.
fn taken_away(absence: &Absence, fence: Fence, company: Company) -> Error {
    let message = if company == Company::Alone && absence.fence > fence {
        "the lease ended early and another holder got the lock; check whether the server's clock was changed"
    } else {
        "another program overwrote or deleted the lock's key"
    };
    Error::new(ErrorKind::LeaseLost, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FENCE: u64 = 100;
    /// When stores forget a lock whose lease ended at 10.
    const LATE: u64 = 10 + CLOCK_MARGIN.as_secs();

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(0) + Duration::from_secs(seconds)
    }

    /// Judged with a deadline of 10 s.
    fn judged(absence: Absence, first_sent: u64, received: u64, copies: u32) -> Option<ErrorKind> {
        let reply = Reply::Release(ReleaseReply::Gone(absence));
        let (first_sent, sent) = (at(first_sent), at(received - 1));
        let answer = Answer { reply, first_sent, sent, received: at(received), copies };
        judge_release(&answer, Fence::new(FENCE), Company::Alone, at(10)).err().map(|error| error.kind())
    }

    fn absence(fence: u64, born: u64, broken: u64, foreign: bool) -> Absence {
        let [fence, born, broken] = [fence, born, broken].map(Fence::new);
        Absence { fence, born, broken, foreign }
    }

    #[test]
    fn the_table_of_designs_section_3() {
        let plain = || absence(FENCE, 1, 0, false);
        let later = || absence(FENCE + 1, 1, 0, false);
        let rows = [
            ("broken", absence(FENCE, 1, FENCE, false), 1, 2, 1, Some(ErrorKind::LeaseLost)),
            (
                "broken, and sent again",
                absence(FENCE + 9, 1, FENCE, false),
                1,
                2,
                3,
                Some(ErrorKind::LeaseLost),
            ),
            (
                "a later one was broken",
                absence(FENCE + 2, 1, FENCE + 1, false),
                1,
                2,
                1,
                Some(ErrorKind::Indeterminate),
            ),
            ("no record", absence(0, 0, 0, false), 1, 2, 1, Some(ErrorKind::LeaseLost)),
            (
                "record born later",
                absence(FENCE + 5, FENCE + 5, 0, false),
                1,
                2,
                2,
                Some(ErrorKind::LeaseLost),
            ),
            ("our earlier copy did it", plain(), 1, 2, 2, None),
            ("the same, and another holds it", later(), 1, 2, 2, None),
            ("deleted by a stranger", plain(), 1, 2, 1, Some(ErrorKind::LeaseLost)),
            ("ended early and taken", later(), 1, 2, 1, Some(ErrorKind::LeaseLost)),
            ("a record from before", absence(FENCE - 1, 1, 0, false), 1, 2, 2, Some(ErrorKind::LeaseLost)),
            ("overwritten by a stranger", absence(FENCE, 1, 0, true), 1, 2, 1, Some(ErrorKind::LeaseLost)),
            ("a stranger after our own copy", absence(FENCE, 1, 0, true), 1, 2, 2, None),
            ("sent before, answered after", plain(), 9, 11, 1, Some(ErrorKind::Indeterminate)),
            ("sent before, sent again after", plain(), 9, 12, 2, Some(ErrorKind::Indeterminate)),
            ("expired", plain(), 11, 12, 1, Some(ErrorKind::LeaseExpired)),
            ("no record soon after", absence(0, 0, 0, false), 11, 12, 1, Some(ErrorKind::LeaseLost)),
            (
                "the record's life is over",
                absence(0, 0, 0, false),
                LATE,
                LATE + 1,
                1,
                Some(ErrorKind::LeaseExpired),
            ),
            (
                "another came since",
                absence(FENCE + 5, FENCE + 5, 0, false),
                LATE,
                LATE + 1,
                1,
                Some(ErrorKind::LeaseLost),
            ),
            ("taken", later(), 11, 12, 1, Some(ErrorKind::LeaseLost)),
            ("expired, asked twice", plain(), 11, 13, 2, Some(ErrorKind::LeaseExpired)),
            ("taken, asked twice", later(), 11, 13, 2, Some(ErrorKind::LeaseLost)),
        ];
        for (what, absence, sent, received, copies, expected) in rows {
            assert_eq!(judged(absence, sent, received, copies), expected, "{what}");
        }
    }

    #[test]
    fn released_is_released() {
        let reply = Reply::Release(ReleaseReply::Released);
        let answer = Answer { reply, first_sent: at(20), sent: at(20), received: at(21), copies: 4 };
        assert!(judge_release(&answer, Fence::new(FENCE), Company::Alone, at(10)).is_ok());
    }
}
