//! What changes the database: one transaction for a request, or for all those that threads of this process bring at
//! the same time.

use std::mem;
use std::time::Duration;

use rusqlite::Connection;

use crate::base::clock::Moment;
use crate::base::name::LockKind;
use crate::protocol::{Abandon, Absence, DowngradeReply, Failure, QueueVerb, Reply, Request, UpgradeReply};
use crate::store::sqlite::database::{Database, Open};
use crate::store::sqlite::failure::{Trouble, busy, sqlite};
use crate::store::sqlite::group::{Followers, Leading, Part, Served};
use crate::store::sqlite::step::{Performed, Step, View};
use crate::store::sqlite::transaction::transact;
use crate::store::sqlite::{
    SqliteStore, acquire, acquire_all, break_lease, cached, extend, holder, leave, limiter, permits, queue,
    release, resume, space, waiters,
};

/// Bytes of payloads with which a request is done in another's transaction at most.
const SMALL: u64 = 64 << 10;

impl SqliteStore {
    /// Does what a request asks for, within its deadline.
    pub(super) fn write(&self, request: &Request, until: Moment) -> Result<Reply, Failure> {
        let (reply, calls) = self.patiently(until, || {
            self.database.enter(|database| {
                let outcome = self.take_part(database, request)?;
                let calls: Vec<_> =
                    outcome.wake.into_iter().filter_map(|waiter| database.call(waiter)).collect();
                Ok((outcome.reply, calls))
            })
        })?;
        for call in calls {
            call.deliver();
        }
        Ok(reply)
    }

    /// Alone, or with the requests of other threads that write now.
    fn take_part(&self, database: &Database, request: &Request) -> Result<Performed, Trouble> {
        let alone = |open: &mut Open| {
            self.alone(database, open, request).map_err(|error| sqlite(&error, database.label()))
        };
        if database.is_memory() || space::stored_bytes(request).is_some_and(|bytes| bytes > SMALL) {
            return database.with(true, alone);
        }
        match database.group.join(request, self.config.clock_margin) {
            Part::Served(Served::Done(outcome)) => Ok(outcome),
            Part::Served(Served::Busy) => Err(Trouble::Busy),
            Part::Served(Served::Alone) => database.with(true, alone),
            Part::Leads(leading) => {
                database.with(true, |open| match self.lead(database, open, request, &leading)? {
                    Some(outcome) => Ok(outcome),
                    None => alone(open),
                })
            }
        }
    }

    /// Does the caller's request and those of all who wait, in one transaction. `None`: nobody waits, or one of the
    /// requests fails, and each is done alone.
    fn lead(
        &self,
        database: &Database,
        open: &mut Open,
        request: &Request,
        leading: &Leading<'_>,
    ) -> Result<Option<Performed>, Trouble> {
        let followers = leading.followers();
        if followers.is_empty() {
            return Ok(None);
        }
        let done = self.together(database, open, request, &followers);
        match done.map_err(|error| sqlite(&error, database.label())) {
            Ok(outcomes) => {
                let mut outcomes = outcomes.into_iter();
                let mine = outcomes.next();
                followers.serve(outcomes.map(Served::Done));
                Ok(mine)
            }
            Err(Trouble::Busy) => {
                followers.serve(std::iter::repeat_with(|| Served::Busy));
                Err(Trouble::Busy)
            }
            Err(Trouble::Failed(_)) => Ok(None),
        }
    }

    /// Outcomes of the caller's request, and of the followers'.
    fn together(
        &self,
        database: &Database,
        open: &mut Open,
        request: &Request,
        followers: &Followers,
    ) -> rusqlite::Result<Vec<Performed>> {
        let mine = (request, self.config.clock_margin);
        let all = || std::iter::once(mine).chain(followers.jobs().map(|job| (&job.request, job.margin)));
        let mut durable = false;
        for (request, _) in all() {
            database.check_room(open, request)?;
            durable = durable || self.must_last(&open.connection, request)?;
        }
        open.set_durable(durable)?;
        let outcomes = self.transaction(&open.connection, durable, all())?;
        open.tidy(false);
        Ok(outcomes)
    }

    fn alone(&self, database: &Database, open: &mut Open, request: &Request) -> rusqlite::Result<Performed> {
        database.check_room(open, request)?;
        let durable = !database.is_memory() && self.must_last(&open.connection, request)?;
        open.set_durable(durable)?;
        let lasts = durable || database.is_memory();
        let mine = || std::iter::once((request, self.config.clock_margin));
        let outcomes = match self.transaction(&open.connection, lasts, mine()) {
            Err(error) if space::is_full(&error) => {
                // What the log takes may be all that is missing.
                space::cut_log(&open.connection)?;
                self.transaction(&open.connection, lasts, mine())?
            }
            outcomes => outcomes?,
        };
        open.tidy(false);
        outcomes.into_iter().next().ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Whether a power cut must not undo it. Leases, waits and calls end with the boot in any case. A claim
    /// counts an attempt, but most claims of an idle consumer find nothing: those wait for no disk.
    fn must_last(&self, connection: &Connection, request: &Request) -> rusqlite::Result<bool> {
        let Request::Queue(request) = request else { return Ok(false) };
        match &request.verb {
            QueueVerb::ExtendClaim(_)
            | QueueVerb::ReadOutbox(_)
            | QueueVerb::Abandon(Abandon { call: None, .. }) => Ok(false),
            QueueVerb::Claim(_) => queue::has_due(connection, request, &self.view()),
            _ => Ok(true),
        }
    }

    /// Does what requests ask for in one transaction; `lasts`: it may give tasks away, since a power cut does not undo
    /// it. Each request comes with how long a lock's row outlives its last lease.
    pub(super) fn transaction<'r>(
        &self,
        connection: &Connection,
        lasts: bool,
        requests: impl Iterator<Item = (&'r Request, Duration)>,
    ) -> rusqlite::Result<Vec<Performed>> {
        transact(connection, || {
            let mut ongoing = Ongoing { lasts, ..Ongoing::default() };
            let outcomes = requests.map(|(request, margin)| {
                // The time is read here: waiting for the transaction must not make leases look longer.
                let view = self.view();
                let step = Step { connection, now: view.now, wall: view.wall, margin };
                ongoing.perform(&step, request, &view)
            });
            let outcomes = outcomes.collect::<Result<_, _>>()?;
            ongoing.queue.save(&self.step(connection, &self.view()))?;
            Ok(outcomes)
        })
    }
}

/// What the requests of a transaction have in common.
#[derive(Default)]
struct Ongoing {
    /// Whether tasks may be given away.
    lasts: bool,
    /// Whether what an earlier boot left has been ended.
    is_of_boot: bool,
    queues_are_of_boot: bool,
    queue: queue::Shared,
}

impl Ongoing {
    fn perform(
        &mut self,
        step: &Step<'_>,
        request: &Request,
        view: &View<'_>,
    ) -> rusqlite::Result<Performed> {
        let Request::Queue(request) = request else {
            if !mem::replace(&mut self.is_of_boot, true) {
                begin_boot(step.connection, view.boot)?;
            }
            return match permits::concerns(request) {
                true => permits::perform(step, request, view),
                false => perform(step, request, view),
            };
        };
        if !mem::replace(&mut self.queues_are_of_boot, true) {
            queue::begin_boot(step.connection, view.boot)?;
        }
        let outcome = queue::perform(step, request, view, &mut self.queue)?;
        // Another process came first and put tasks in: once more, now as one that must last.
        let taken = !self.lasts && queue::has_taken(&outcome.reply);
        if taken { Err(busy()) } else { Ok(outcome) }
    }
}

/// A verb of locks without permits, or of limiters.
fn perform(step: &Step<'_>, request: &Request, view: &View<'_>) -> rusqlite::Result<Performed> {
    match request {
        Request::Acquire(request) if request.name.kind() == LockKind::Cached => {
            cached::acquire(step, request)
        }
        Request::StoreValue(request) => cached::store_value(step, request),
        Request::Invalidate(request) => cached::invalidate(step, request),
        Request::Acquire(request) => acquire::acquire(step, request),
        Request::AcquireAll(request) => acquire_all::acquire_all(step, request),
        Request::Extend(request) => extend::extend(step, request),
        Request::Release(request) => release::release(step, request),
        Request::Leave(request) => leave::leave(step, request),
        Request::Resume(request) => resume::resume(step, request),
        Request::BreakLease(request) => break_lease::break_lease(step, request),
        Request::Holder(request) => holder::holder(step.connection, request, view).map(Performed::from),
        Request::Waiters(request) => waiters::waiters(step.connection, request, view).map(Performed::from),
        // Only permits have these.
        Request::Downgrade(_) => Ok(Reply::Downgrade(DowngradeReply::Gone(Absence::default())).into()),
        Request::Upgrade(_) => Ok(Reply::Upgrade(UpgradeReply::Gone(Absence::default())).into()),
        Request::Take(request) => limiter::take(step, request),
        Request::GiveBack(request) => limiter::give_back(step, request),
        Request::Queue(_) => Err(rusqlite::Error::InvalidQuery),
    }
}

/// Ends what an earlier boot left: its times mean nothing now, and its processes are gone. Fences stay.
fn begin_boot(connection: &Connection, boot: &str) -> rusqlite::Result<()> {
    let same = connection.prepare_cached("SELECT 1 FROM store WHERE boot = ?1")?.exists([boot])?;
    if same {
        return Ok(());
    }
    connection.execute("UPDATE store SET boot = ?1", [boot])?;
    connection.execute_batch(
        "UPDATE lock SET token = NULL, expires = 0, ended_until = 0;
         DELETE FROM waiter;
         DELETE FROM ended;",
    )
}
