//! What changes the database: one transaction for a request, or for all those that threads of this process bring at
//! the same time.

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
    SqliteStore, acquire, acquire_all, boot_id, break_lease, cached, extend, holder, leave, permits, queue,
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
            Ok((mine, theirs)) => {
                followers.serve(theirs.into_iter().map(Served::Done));
                Ok(Some(mine))
            }
            Err(Trouble::Busy) => {
                followers.serve(std::iter::repeat_with(|| Served::Busy));
                Err(Trouble::Busy)
            }
            Err(Trouble::Failed(_)) => Ok(None),
        }
    }

    fn together(
        &self,
        database: &Database,
        open: &mut Open,
        request: &Request,
        followers: &Followers,
    ) -> rusqlite::Result<(Performed, Vec<Performed>)> {
        let mut durable = false;
        for request in std::iter::once(request).chain(followers.jobs().map(|job| &job.request)) {
            if let Some(path) = database.path() {
                space::check(path, request, &mut open.room)?;
            }
            durable = durable || self.must_last(&open.connection, request)?;
        }
        open.set_durable(durable)?;
        let outcome = transact(&open.connection, || {
            let mine = self.perform_within(&open.connection, request, self.config.clock_margin, durable)?;
            let theirs = followers
                .jobs()
                .map(|job| self.perform_within(&open.connection, &job.request, job.margin, durable));
            Ok((mine, theirs.collect::<Result<_, _>>()?))
        })?;
        open.tidy(false);
        Ok(outcome)
    }

    fn alone(&self, database: &Database, open: &mut Open, request: &Request) -> rusqlite::Result<Performed> {
        if let Some(path) = database.path() {
            space::check(path, request, &mut open.room)?;
        }
        let durable = !database.is_memory() && self.must_last(&open.connection, request)?;
        open.set_durable(durable)?;
        let lasts = durable || database.is_memory();
        let attempt = |connection: &Connection| {
            transact(connection, || self.perform_within(connection, request, self.config.clock_margin, lasts))
        };
        let outcome = match attempt(&open.connection) {
            Err(error) if space::is_full(&error) => {
                // What the log takes may be all that is missing.
                space::cut_log(&open.connection)?;
                attempt(&open.connection)?
            }
            outcome => outcome?,
        };
        open.tidy(false);
        Ok(outcome)
    }

    /// Whether a power cut must not undo it. Leases, waits and calls end with the boot in any case. A claim
    /// counts an attempt, but most claims of an idle consumer find nothing: those wait for no disk.
    fn must_last(&self, connection: &Connection, request: &Request) -> rusqlite::Result<bool> {
        let Request::Queue(request) = request else { return Ok(false) };
        match &request.verb {
            QueueVerb::ExtendClaim(_) | QueueVerb::Abandon(Abandon { call: None, .. }) => Ok(false),
            QueueVerb::Claim(_) => queue::has_due(connection, request, &self.view()),
            _ => Ok(true),
        }
    }

    /// A request within its transaction. The time is read there: waiting for it must not make leases look longer.
    /// `lasts`: tasks may be given away.
    fn perform_within(
        &self,
        connection: &Connection,
        request: &Request,
        margin: Duration,
        lasts: bool,
    ) -> rusqlite::Result<Performed> {
        let boot = boot_id(&self.config.clock);
        match request {
            Request::Queue(_) => queue::begin_boot(connection, boot)?,
            _ => begin_boot(connection, boot)?,
        }
        let view = self.view();
        let step = Step { connection, now: view.now, wall: view.wall, margin };
        match request {
            Request::Queue(request) => {
                let outcome = queue::perform(&step, request, &view)?;
                // Another process came first and put tasks in: once more, now as one that must last.
                let taken = !lasts && queue::has_taken(&outcome.reply);
                if taken { Err(busy()) } else { Ok(outcome) }
            }
            request if permits::concerns(request) => permits::perform(&step, request, &view),
            request => perform(&step, request, &view),
        }
    }
}

/// A verb of locks without permits.
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
