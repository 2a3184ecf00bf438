//! Closing a client: what is held is given back, and threads and connections go.

use std::sync::Arc;

use crate::base::error::Error;
use crate::base::wake::locked;
use crate::driver::drive_all_blocking;
use crate::engine::leased::Leased;
use crate::lease::held_lock::HeldLock;
use crate::protocol::Verdict;
use crate::session::metrics::Ended;
use crate::session::tracked_lease::TrackedLease;
use crate::session::{Live, Session};

/// Leases released in one round trip.
const BATCH: usize = 256;

/// A client that is being closed: see [`Client::close`](crate::Client::close).
pub(crate) struct Close {
    /// None in a forked child that has not used it.
    live: Option<Arc<Live>>,
    /// Calls that go on when this has returned.
    beneath: usize,
}

impl Close {
    /// Refuses all calls from now on, and wakes those that wait. Runs on the thread that closes the client.
    pub(crate) fn begin(session: &Session) -> Self {
        let live = session.close().cloned();
        let beneath = live.as_ref().map_or(0, |live| live.closing.beneath());
        if let Some(live) = &live {
            live.closing.begin();
            live.hub.wake_all();
        }
        Self { live, beneath }
    }

    /// Waits for the calls to end, gives everything back, and lets go of threads and connections. On any thread.
    pub(crate) fn finish(self) -> Result<usize, Error> {
        let Some(live) = &self.live else { return Ok(0) };
        live.closing.wait(live.settings.timeout, self.beneath);
        let released = release_all(live);
        put_back_all(live);
        live.keeper.finish();
        live.channel.close();
        live.closing.end();
        live.store.close();
        released
    }
}

/// Releases all locks of a client. Returns how many, or the first error other than a lost lease.
pub(crate) fn release_all(live: &Arc<Live>) -> Result<usize, Error> {
    let mut tally = Tally::default();
    let all = HeldLock::all(live).into_iter();
    // Their time begins now for all of them: a store that does not answer takes that of one call.
    let mut all: Vec<_> = all.filter_map(|held| held.release(None).ok()).collect();
    for some in all.chunks_mut(BATCH) {
        let answers = drive_all_blocking(live, some.iter_mut().map(|releasing| &mut releasing.machine));
        some.iter().zip(answers).for_each(|(releasing, answer)| tally.count(releasing.judge(answer)));
    }
    tally.result()
}

/// Gives back all tasks, uncounted: nobody renews their claims any more.
fn put_back_all(live: &Arc<Live>) {
    for kept in TrackedLease::all(live) {
        let leased = locked(&kept.cell.state).leased().clone();
        if let Leased::Task(task) = leased
            && kept.end(Ended::Dropped)
        {
            live.keeper.clean_up(task.settled(Verdict::PUT_BACK));
        }
    }
}

/// Counts releases, and keeps the first error that is worth telling.
#[derive(Default)]
struct Tally {
    released: usize,
    error: Option<Error>,
}

impl Tally {
    fn count(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => self.released += 1,
            Err(error) if error.is_lost() => {}
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    fn result(self) -> Result<usize, Error> {
        self.error.map_or(Ok(self.released), Err)
    }
}
