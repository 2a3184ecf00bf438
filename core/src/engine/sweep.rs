//! A sweep over dead tasks: as many requests as it takes, each about a limited number of them.

use std::sync::Arc;

use crate::protocol::{DeadOnes, DiedBy, SWEEP_LOOK, Sweep, Swept};

/// What is left of it.
#[derive(Debug)]
pub(crate) struct SweepMachine {
    /// The next request; `None` once all is done.
    next: Option<Sweep>,
    /// What comes after: ids or receipts that are too many for one.
    later: Vec<DeadOnes>,
    /// How many more are wanted.
    left: u64,
    swept: u64,
}

impl SweepMachine {
    /// At most `most` of those that the request is about, whatever its own limits are.
    pub(crate) fn new(sweep: Sweep, most: u64) -> Self {
        let mut later = match &sweep.among {
            DeadOnes::Ids(ids) => parts(ids, DeadOnes::Ids),
            DeadOnes::Receipts(receipts) => parts(receipts, DeadOnes::Receipts),
            DeadOnes::Oldest => vec![DeadOnes::Oldest],
        };
        let next = later.pop().map(|among| Sweep { among, ..sweep });
        Self { next, later, left: most, swept: 0 }
    }

    /// The next request; `None` at the end.
    pub(crate) fn next(&self) -> Option<Sweep> {
        let max = u32::try_from(self.left.min(SWEEP_LOOK as u64)).unwrap_or(u32::MAX);
        self.next.clone().filter(|_| max > 0).map(|next| Sweep { max, ..next })
    }

    /// The answer to it.
    pub(crate) fn swept(&mut self, reply: Swept) {
        self.left = self.left.saturating_sub(reply.count);
        self.swept += reply.count;
        let Some(mut next) = self.next.take() else { return };
        // What dies from now on is not meant: it may be what was kicked.
        next.until = DiedBy::Then(reply.until);
        next.from = reply.next;
        if next.from.is_none() {
            let Some(among) = self.later.pop() else { return };
            next.among = among;
        }
        self.next = Some(next);
    }

    /// How many it was done to so far.
    pub(crate) fn count(&self) -> u64 {
        self.swept
    }
}

/// As many as one request looks at, the first ones last.
fn parts<T: Clone>(all: &[T], part: impl Fn(Arc<[T]>) -> DeadOnes) -> Vec<DeadOnes> {
    all.chunks(SWEEP_LOOK).rev().map(|some| part(some.into())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;
    use crate::protocol::{Place, Receipt};

    fn sweep(among: DeadOnes) -> Sweep {
        Sweep::new(among, 0)
    }

    fn place() -> Place {
        Place { part: 8, score: "7".into(), member: (*b"9").into() }
    }

    fn reply(count: u64, next: Option<Place>) -> Swept {
        Swept { count, until: 70, next }
    }

    #[test]
    fn it_goes_on_where_the_last_request_ended_and_takes_no_later_deaths() {
        let mut machine = SweepMachine::new(sweep(DeadOnes::Oldest), 2_500);
        assert_eq!(machine.next().unwrap().max, 1_000);
        machine.swept(reply(0, Some(place())));
        let next = machine.next().unwrap();
        assert_eq!((next.max, next.from, next.until), (1_000, Some(place()), DiedBy::Then(70)));
        machine.swept(reply(1_000, Some(place())));
        machine.swept(reply(900, Some(place())));
        assert_eq!(machine.next().unwrap().max, 600);
        machine.swept(reply(600, Some(place())));
        assert!(machine.next().is_none(), "there are as many as were wanted");
        assert_eq!(machine.count(), 2_500);
    }

    #[test]
    fn it_ends_where_nothing_is_left() {
        let mut machine = SweepMachine::new(sweep(DeadOnes::Oldest), u64::MAX);
        machine.swept(reply(3, None));
        assert!(machine.next().is_none());
        assert_eq!(machine.count(), 3);
        assert!(SweepMachine::new(sweep(DeadOnes::Ids([].into())), 9).next().is_none());
    }

    #[test]
    fn many_receipts_are_many_requests() {
        let receipts: Vec<_> = (0..2_001).map(Receipt::new).collect();
        let mut machine = SweepMachine::new(sweep(DeadOnes::Receipts(receipts.into())), u64::MAX);
        let mut sizes = Vec::new();
        while let Some(next) = machine.next() {
            let DeadOnes::Receipts(part) = next.among else { panic!("other ones") };
            sizes.push((part[0].get(), part.len(), next.from.is_some()));
            // The second is not finished by one.
            machine.swept(reply(1, (sizes.len() == 2).then(place)));
        }
        assert_eq!(
            sizes,
            [(0, 1_000, false), (1_000, 1_000, false), (1_000, 1_000, true), (2_000, 1, false)]
        );
    }
}
