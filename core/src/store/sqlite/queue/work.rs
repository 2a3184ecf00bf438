//! One verb's work on one queue: its record, the time, and whether somebody is to be woken at the end.

use std::time::Duration;

use crate::protocol::{Due, Receipt, Version, Waiter};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::due::{FIRST_DUE, Outlook};
use crate::store::sqlite::queue::key_book::KeyBook;
use crate::store::sqlite::queue::limits::Limits;
use crate::store::sqlite::queue::record::{Record, RowState};
use crate::store::sqlite::step::Step;

/// What a verb works with.
pub(super) struct Work<'a> {
    pub(super) step: Step<'a>,
    /// The queue's.
    pub(super) key: &'a str,
    pub(super) record: Record,
    before: Record,
    /// What it lets go and run at most, if it has limits, or had tasks with keys; whether that has changed.
    pub(super) limits: Option<Limits>,
    pub(super) limits_changed: bool,
    pub(super) keys: KeyBook,
    /// How many claims there were.
    claims_before: i64,
    /// Wall time in milliseconds.
    pub(super) now_ms: i64,
    /// Whether something became ready for which nobody was woken yet.
    pub(super) ready: bool,
    /// Whether something will be due earlier than any waiter expects.
    pub(super) earlier: bool,
    /// Whether messages came of which nobody was told yet.
    pub(super) has_mail: bool,
    /// The earliest due of a scheduled task, once it was asked for.
    earliest: Option<i64>,
    /// Those who are told of the end of a task.
    pub(super) roused: Vec<Waiter>,
    /// Results that came, which may be too many.
    pub(super) new_results: usize,
    /// Whether events were noted of which nobody was told yet.
    pub(super) has_happened: bool,
    /// Bytes of the bodies that came to the dead.
    pub(super) moved: i64,
    /// Whether the call's slot has no call that is remembered.
    pub(super) is_new_slot: bool,
}

/// The record of the queue that the last request was about: it is read once and written once for all requests of a
/// transaction that are about the same one.
#[derive(Default)]
pub(in crate::store::sqlite) struct Shared {
    /// The record, and as it is in the table.
    record: Option<(Record, Record)>,
    key: Box<str>,
}

impl Shared {
    /// Writes what has changed. It has to, before anything else looks at the table.
    pub(in crate::store::sqlite) fn save(&mut self, step: &Step<'_>) -> rusqlite::Result<()> {
        self.record.take().map_or(Ok(()), |(record, before)| record.save(step, &before))
    }
}

impl<'a> Work<'a> {
    /// Begins with the queue's record, which is made if there is none.
    pub(super) fn begin(step: Step<'a>, key: &'a str, shared: &mut Shared) -> rusqlite::Result<Self> {
        if *shared.key != *key {
            shared.save(&step)?;
        }
        let (record, before) = match shared.record.take() {
            Some(known) => known,
            None => {
                shared.key = key.into();
                let record = Record::find_or_create(&step, key)?;
                (record, record)
            }
        };
        let now_ms = step.wall / 1_000;
        let limits = if record.limited == 0 { None } else { Some(Limits::find(step.connection, key)?) };
        Ok(Self {
            step,
            key,
            record,
            before,
            limits,
            limits_changed: false,
            keys: KeyBook::default(),
            claims_before: record.count(RowState::Claimed),
            now_ms,
            ready: false,
            earlier: false,
            has_mail: false,
            earliest: None,
            roused: Vec::new(),
            new_results: 0,
            has_happened: false,
            moved: 0,
            is_new_slot: true,
        })
    }

    /// Ends the work: cleans up, chooses whom to wake, and leaves the record.
    pub(super) fn finish(mut self, shared: &mut Shared) -> rusqlite::Result<Vec<Waiter>> {
        self.write_keys(0)?;
        self.save_limits()?;
        let is_limited = self.limits().is_some_and(|limits| limits.max_running.is_some());
        // Others may run now.
        self.ready |= is_limited && self.record.count(RowState::Claimed) < self.claims_before;
        self.trim_dead()?;
        self.trim_results()?;
        self.tidy_flows()?;
        self.tell_events()?;
        let chance = self.ready || self.earlier || self.has_mail;
        let wake = if chance && !self.record.paused { self.choose()? } else { None };
        self.record.clean_purged(&self.step)?;
        shared.record = Some((self.record, self.before));
        self.roused.extend(wake);
        Ok(self.roused)
    }

    /// The version of an enqueue that is accepted now.
    pub(super) fn next_version(&mut self) -> Version {
        Version::new(self.next_number())
    }

    /// The receipt of a delivery that begins now.
    pub(super) fn next_receipt(&mut self) -> Receipt {
        Receipt::new(self.next_number())
    }

    /// Versions and receipts have one counter: their numbers show which came first.
    fn next_number(&mut self) -> u64 {
        self.record.counter = self.record.counter.saturating_add(1).max(self.step.wall);
        number(self.record.counter)
    }

    /// A due time in milliseconds.
    pub(super) fn due(&self, due: Due) -> i64 {
        match due {
            Due::Now => self.now_ms,
            Due::In(delay) => self.after(delay),
            Due::At(millis) => stored(millis),
        }
    }

    /// The wall time so long from now, in milliseconds.
    pub(super) fn after(&self, delay: Duration) -> i64 {
        self.now_ms.saturating_add(millis_up(delay))
    }

    /// Notes a task that is due then; whether it is earlier than all that were scheduled before.
    pub(super) fn is_earliest(&mut self, due: i64) -> rusqlite::Result<bool> {
        let earliest = match self.earliest {
            Some(earliest) => earliest,
            None => self.first_due()?.unwrap_or(i64::MAX),
        };
        self.earliest = Some(earliest.min(due));
        Ok(due < earliest)
    }

    /// When the first scheduled task is due.
    fn first_due(&self) -> rusqlite::Result<Option<i64>> {
        self.step.connection.prepare_cached(FIRST_DUE)?.query_row([self.record.id], |row| row.get(0))
    }

    /// How long until there is something to claim, as far as is known.
    pub(super) fn next_due(&self) -> rusqlite::Result<Option<Duration>> {
        let Self { step, record, limits, .. } = self;
        let limits = limits.as_ref();
        Outlook { connection: step.connection, record, limits, now: step.now, wall: step.wall }.next_due()
    }
}

/// Whole milliseconds, and no shorter than asked for.
pub(super) fn millis_up(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
