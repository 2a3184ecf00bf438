//! How acquires and takes are counted and timed.

use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::engine::acquire::Acquired;
use crate::engine::several::Several;
use crate::engine::take::TakeEnd;
use crate::session::Live;

/// Counts an acquire, also one whose future is dropped.
pub(crate) struct Timing<'a> {
    live: &'a Live,
    began: Moment,
    ended: bool,
}

impl<'a> Timing<'a> {
    pub(crate) fn begin(live: &'a Live) -> Self {
        Self { live, began: live.clock.now(), ended: false }
    }

    pub(crate) fn end(mut self, result: &Result<Acquired, Error>) {
        self.ended = true;
        self.live.meters.acquired(result.as_ref(), self.live.clock.now().since(self.began));
    }

    /// Of several locks: each that was granted is counted.
    pub(crate) fn end_of_several(mut self, result: &Result<Several, Error>) {
        self.ended = true;
        let took = self.live.clock.now().since(self.began);
        match result {
            Ok(Several::Granted { grants, .. }) => {
                grants
                    .iter()
                    .for_each(|grant| self.live.meters.acquired(Ok(&Acquired::Granted(grant.clone())), took));
            }
            Ok(Several::Busy) => self.live.meters.acquired(Ok(&Acquired::Busy), took),
            Err(error) => self.live.meters.acquired(Err(error), took),
        }
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.live.meters.acquire_dropped();
        }
    }
}

/// Counts a take, also one whose future is dropped.
pub(crate) struct TakeTiming<'a> {
    live: &'a Live,
    began: Moment,
    ended: bool,
}

impl<'a> TakeTiming<'a> {
    pub(crate) fn begin(live: &'a Live) -> Self {
        Self { live, began: live.clock.now(), ended: false }
    }

    pub(crate) fn end(mut self, result: &Result<TakeEnd, Error>) {
        self.ended = true;
        self.live.meters.taken(result.as_ref(), self.live.clock.now().since(self.began));
    }
}

impl Drop for TakeTiming<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.live.meters.take_dropped();
        }
    }
}
