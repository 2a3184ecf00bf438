//! The dead records that kick and remove_dead are about.

use std::ops::ControlFlow;

use rusqlite::{Row, ToSql};

use crate::base::name::TaskId;
use crate::protocol::{DeadOnes, DiedBy, Place, SWEEP_LOOK, Sweep, Swept};
use crate::store::sqlite::numbers::{number, stored};
use crate::store::sqlite::queue::walk::{ALL, EXPIRED, FAILED, Walk, Way};
use crate::store::sqlite::queue::work::{Work, millis_up};

/// A record that is looked at.
pub(super) struct Dead {
    pub(super) serial: i64,
    pub(super) id: Box<str>,
    /// Of its body.
    pub(super) size: i64,
    pub(super) expired: bool,
    died: i64,
    reason: Box<str>,
    /// Where to go on after it.
    place: Place,
}

const SELECT: &str = "SELECT serial, id, length(body), expired, died, reason";
const COLUMNS: usize = 6;

impl Dead {
    fn read(row: &Row<'_>, place: Place) -> rusqlite::Result<Self> {
        Ok(Self {
            serial: row.get(0)?,
            id: row.get(1)?,
            size: row.get(2)?,
            expired: row.get(3)?,
            died: row.get(4)?,
            reason: row.get(5)?,
            place,
        })
    }
}

impl Work<'_> {
    /// Like sweep.lua; `act` returns whether it changed the record. It moves a limited number of bytes.
    pub(super) fn sweep(
        &mut self,
        sweep: &Sweep,
        mut act: impl FnMut(&mut Self, &Dead) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<Swept> {
        let until = match sweep.until {
            DiedBy::Ago(time) => self.now_ms.saturating_sub(millis_up(time)),
            DiedBy::Then(time) => stored(time),
        };
        let (mut swept, mut place) = (Swept { count: 0, until: number(until), next: None }, None);
        let (records, more) = self.records(sweep)?;
        for dead in records {
            let is_wanted = dead.died <= until
                && dead.reason.starts_with(&*sweep.reason)
                && dead.id.starts_with(&*sweep.prefix);
            if is_wanted {
                if swept.count >= u64::from(sweep.max) || self.has_moved_enough() {
                    swept.next = place;
                    return Ok(swept);
                }
                if act(self, &dead)? {
                    swept.count += 1;
                    self.moved += dead.size;
                }
            }
            place = Some(dead.place);
        }
        swept.next = place.filter(|_| more);
        Ok(swept)
    }

    /// Those that are looked at, and whether there may be more.
    fn records(&self, sweep: &Sweep) -> rusqlite::Result<(Vec<Dead>, bool)> {
        let skip = || sweep.from.as_ref().and_then(|place| place.score.parse().ok()).unwrap_or(0);
        match &sweep.among {
            DeadOnes::Ids(ids) => {
                let newest = "id = ?2 ORDER BY receipt DESC LIMIT 1";
                self.named(newest, ids.iter().map(TaskId::as_str), skip())
            }
            DeadOnes::Receipts(receipts) => self.named("receipt = ?2", receipts.iter(), skip()),
            DeadOnes::Oldest => self.oldest(sweep.from.as_ref()),
        }
    }

    fn named<T: ToSql>(
        &self,
        condition: &str,
        names: impl Iterator<Item = T>,
        skip: usize,
    ) -> rusqlite::Result<(Vec<Dead>, bool)> {
        let mut records = Vec::new();
        for (index, name) in names.enumerate().skip(skip).take(SWEEP_LOOK) {
            let place = Place { part: 1, score: (index + 1).to_string().into(), member: [].into() };
            let sql = format!("{SELECT} FROM dead WHERE queue = ?1 AND {condition}");
            let mut statement = self.step.connection.prepare_cached(&sql)?;
            let mut rows = statement.query((self.record.id, name))?;
            if let Some(row) = rows.next()? {
                records.push(Dead::read(row, place)?);
            }
        }
        Ok((records, false))
    }

    fn oldest(&self, from: Option<&Place>) -> rusqlite::Result<(Vec<Dead>, bool)> {
        let mut records = Vec::new();
        let mut walk = Walk {
            connection: self.step.connection,
            queue: self.record.id,
            way: Way::Forward,
            select: SELECT,
            limit: i64::try_from(SWEEP_LOOK).unwrap_or(i64::MAX),
            from,
        };
        for part in [&FAILED, &EXPIRED] {
            let mut see = |row: &Row<'_>| {
                records.push(Dead::read(row, part.place(row, COLUMNS)?)?);
                let is_enough = records.len() >= SWEEP_LOOK;
                Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            if walk.along(part, ALL, &mut see)?.is_break() {
                return Ok((records, true));
            }
        }
        Ok((records, false))
    }
}
