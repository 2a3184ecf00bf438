//! The keys of tasks: like keys.lua. How many tasks of a key are where is counted in indexes that have only those.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use crate::protocol::{KEY_LOOK, OwnLimits, PULL_MAX, TURN_BITS};
use crate::store::sqlite::numbers::number;
use crate::store::sqlite::queue::limits::{Quarters, StoredRate};
use crate::store::sqlite::queue::record::RowState;
use crate::store::sqlite::queue::task::{SEQUENCE, Task};
use crate::store::sqlite::queue::work::Work;

/// What is allowed to a key.
pub(super) struct Terms {
    concurrency: Option<i64>,
    rate: Option<StoredRate>,
    weight: i64,
}

/// When a key may go on.
#[derive(Clone, Copy, Default)]
pub(super) struct KeyTime {
    tat: Quarters,
    /// Milliseconds.
    until: i64,
    /// When it is to be looked at, or forgotten.
    looks: Option<i64>,
    forgets: Option<i64>,
}

/// A key's tasks in line.
struct InLine {
    count: i64,
    /// The highest priority.
    top: Option<i64>,
}

/// How many more of a key may come into line.
enum Room {
    None,
    Free(i64),
    /// One of a higher priority than all in line.
    Higher,
}

/// Limits that a key has of its own, if it has any.
pub(super) fn own_limits(
    connection: &Connection,
    queue: &str,
    key: &str,
) -> rusqlite::Result<Option<OwnLimits>> {
    connection
        .prepare_cached(
            "SELECT concurrency, rate_count, rate_per, rate_burst, weight FROM key_limit WHERE queue = ?1 AND key = ?2",
        )?
        .query_row((queue, key), |row| {
            let rate: Option<StoredRate> = match row.get(1)? {
                Some(count) => Some(StoredRate { count, per: row.get(2)?, burst: row.get(3)? }),
                None => None,
            };
            Ok(OwnLimits {
                concurrency: row.get(0)?,
                rate: rate.map(StoredRate::rate),
                weight: row.get(4)?,
            })
        })
        .optional()
}

impl KeyTime {
    pub(super) fn find(connection: &Connection, queue: i64, key: &str) -> rusqlite::Result<Self> {
        let found = connection
            .prepare_cached("SELECT tat, until, looks, forgets FROM key_time WHERE queue = ?1 AND key = ?2")?
            .query_row((queue, key), |row| {
                Ok(Self { tat: row.get(0)?, until: row.get(1)?, looks: row.get(2)?, forgets: row.get(3)? })
            })
            .optional()?;
        Ok(found.unwrap_or_default())
    }

    /// In how long more of it may come into line, if not now.
    pub(super) fn opens(self, terms: &Terms, wall: i64) -> Option<Duration> {
        let now = wall.saturating_mul(4);
        let at = self.free_at(terms, 0, now);
        (at > now).then(|| Duration::from_millis(number(millis_up(at - now))))
    }

    /// When the next one may come into line behind `before`.
    pub(super) fn free_at(self, terms: &Terms, before: i64, now: Quarters) -> Quarters {
        let until = self.until.saturating_mul(4_000);
        let Some((gap, slack)) = terms.rate.map(StoredRate::pace) else { return until };
        let tat = if before > 0 { self.tat.max(now) } else { self.tat };
        until.max(tat + before * gap - slack)
    }
}

impl Work<'_> {
    /// The time in quarters of microseconds.
    fn now_quarters(&self) -> Quarters {
        self.step.wall.saturating_mul(4)
    }

    fn terms(&self, key: &str) -> rusqlite::Result<Terms> {
        let Some(limits) = self.limits() else {
            return Ok(Terms { concurrency: None, rate: None, weight: 1 });
        };
        let own = if limits.keys_set > 0 { own_limits(self.step.connection, self.key, key)? } else { None };
        Ok(Terms::of(own, limits.key_concurrency, limits.key_rate))
    }

    fn key_time(&self, key: &str) -> rusqlite::Result<KeyTime> {
        if !self.limits().is_some_and(|limits| limits.timed) {
            return Ok(KeyTime::default());
        }
        KeyTime::find(self.step.connection, self.record.id, key)
    }

    fn set_key_time(&mut self, key: &str, time: KeyTime) -> rusqlite::Result<()> {
        let KeyTime { tat, until, looks, forgets } = time;
        if !self.limits().is_some_and(|limits| limits.timed) {
            self.limits_mut().timed = true;
        }
        self.step.change(
            "INSERT INTO key_time (queue, key, tat, until, looks, forgets) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET tat = excluded.tat, until = excluded.until, looks = excluded.looks,
               forgets = excluded.forgets",
            &[&self.record.id, &key, &tat, &until, &looks, &forgets],
        )?;
        Ok(())
    }

    /// Notes that something of a key's has changed.
    pub(super) fn change_key(&mut self, key: &str) {
        if self.limits().is_none() {
            self.limits_mut();
        }
        if !self.keys.known.contains(key) {
            self.keys.known.insert(key.into());
            self.keys.changed.push(key.into());
        }
    }

    /// Those of a key in line, but one.
    fn in_line(&self, key: &str, besides: i64) -> rusqlite::Result<InLine> {
        let (count, first): (i64, Option<i64>) = self
            .step
            .connection
            .prepare_cached(
                "SELECT count(*), min(turn) FROM task
                 WHERE queue = ?1 AND key = ?2 AND state = 1 AND key <> '' AND serial <> ?3",
            )?
            .query_row((self.record.id, key, besides), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(InLine { count, top: first.map(|turn| i64::from(u8::MAX) - (turn >> TURN_BITS)) })
    }

    /// How many of a key run, but one, as far as that matters.
    fn running(&self, key: &str, besides: i64, most: i64) -> rusqlite::Result<i64> {
        self.step
            .connection
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM task
                 WHERE queue = ?1 AND key = ?2 AND state = 2 AND key <> '' AND serial <> ?3 LIMIT ?4)",
            )?
            .query_row((self.record.id, key, besides, most), |row| row.get(0))
    }

    /// Whether any task is held, as in most queues none is.
    fn holds_any(&self) -> bool {
        self.record.count(RowState::Held) > 0
    }

    fn holds(&self, key: &str, besides: i64) -> rusqlite::Result<bool> {
        if !self.holds_any() {
            return Ok(false);
        }
        self.step
            .connection
            .prepare_cached(
                "SELECT 1 FROM task WHERE queue = ?1 AND key = ?2 AND state = 3 AND parked = 0 AND serial <> ?3",
            )?
            .exists((self.record.id, key, besides))
    }

    fn room(&self, key: &str, share: i64, besides: i64, in_line: &InLine) -> rusqlite::Result<Room> {
        let terms = self.terms(key)?;
        let running = terms.concurrency.map_or(Ok(0), |most| self.running(key, besides, most))?;
        let time = self.key_time(key)?;
        let now = self.now_quarters();
        if terms.concurrency.is_some_and(|most| running >= most)
            || time.free_at(&terms, in_line.count, now) > now
        {
            return Ok(Room::None);
        }
        let by_weight = terms.weight.max(share) - in_line.count;
        let free = terms.concurrency.map_or(by_weight, |most| by_weight.min(most - running - in_line.count));
        Ok(if free > 0 { Room::Free(free) } else { Room::Higher })
    }

    /// A task leaves the place that it has in the table.
    pub(super) fn leave_key(&mut self, task: &Task) -> rusqlite::Result<()> {
        if task.key.is_empty() || task.left || matches!(task.state, RowState::Scheduled | RowState::Parked) {
            return Ok(());
        }
        if task.state == RowState::Claimed && !self.limits().is_some_and(|limits| limits.counts_runs) {
            return Ok(());
        }
        self.change_key(&task.key);
        if task.state == RowState::Ready && self.holds_any() {
            let others = self.in_line(&task.key, task.serial)?;
            if others.top.is_none_or(|top| i64::from(task.priority) > top) {
                self.keys.dropped.insert(task.key.clone());
            }
        }
        Ok(())
    }

    /// A task that is due comes into line, or is held.
    pub(super) fn enter_key(&mut self, task: &mut Task) -> rusqlite::Result<()> {
        if task.key.is_empty() {
            return Ok(());
        }
        let key = task.key.clone();
        self.change_key(&key);
        let in_line = self.in_line(&key, task.serial)?;
        let is_higher = in_line.top.is_some_and(|top| i64::from(task.priority) > top);
        let enters = match self.room(&key, 0, task.serial, &in_line)? {
            Room::None => false,
            Room::Free(_) => is_higher || !self.holds(&key, task.serial)?,
            Room::Higher => is_higher,
        };
        if !enters {
            task.state = RowState::Held;
        }
        Ok(())
    }

    /// Whether the key of a task in line lets it run now; then its rate goes on. Otherwise it is to be held.
    pub(super) fn runs_by_key(&mut self, task: &Task) -> rusqlite::Result<bool> {
        if task.key.is_empty() {
            return Ok(true);
        }
        self.leave_key(task)?;
        let (terms, mut time, now) = (self.terms(&task.key)?, self.key_time(&task.key)?, self.now_quarters());
        if let Some(most) = terms.concurrency
            && self.running(&task.key, task.serial, most)? >= most
        {
            return Ok(false);
        }
        if time.free_at(&terms, 0, now) > now {
            return Ok(false);
        }
        if let Some(rate) = terms.rate {
            time.tat = time.tat.max(now) + rate.pace().0;
            self.set_key_time(&task.key, time)?;
        }
        Ok(true)
    }

    /// None of the key comes into line before then.
    pub(super) fn hold_key(&mut self, key: &str, until: i64) -> rusqlite::Result<()> {
        self.change_key(key);
        let mut time = self.key_time(key)?;
        time.until = time.until.max(until);
        self.set_key_time(key, time)
    }

    /// Stores what has changed: the first ones of each key come into line as far as there is room. A claim that wants more
    /// than there is in line says how many: they come from all keys alike.
    pub(super) fn write_keys(&mut self, wanted: usize) -> rusqlite::Result<()> {
        let changed = std::mem::take(&mut self.keys.changed);
        if changed.is_empty() {
            return Ok(());
        }
        let share = i64::try_from(wanted.div_ceil(changed.len())).unwrap_or(i64::MAX);
        if self.holds_any() {
            for key in &changed {
                self.pull(key, share)?;
            }
        }
        for key in &changed {
            self.note_wait(key)?;
        }
        self.keys.dropped.clear();
        // What is written in the meantime belongs to it.
        self.keys.changed.clear();
        self.keys.known.clear();
        Ok(())
    }

    fn pull(&mut self, key: &str, share: i64) -> rusqlite::Result<()> {
        let mut in_line = self.in_line(key, 0)?;
        let (free, only_higher) = match self.room(key, share, 0, &in_line)? {
            Room::None => return Ok(()),
            Room::Free(free) => (free, false),
            Room::Higher if !self.keys.dropped.contains(key) => return Ok(()),
            Room::Higher => (1, true),
        };
        let most = free.min(share.max(i64::try_from(PULL_MAX).unwrap_or(i64::MAX)));
        let (terms, time, now) = (self.terms(key)?, self.key_time(key)?, self.now_quarters());
        let found: Vec<(i64, i64, i64)> = self.step.few(
            "SELECT serial, turn, length(body) FROM task WHERE queue = ?1 AND key = ?2 AND state = 3 AND parked = 0
             ORDER BY turn, id LIMIT ?3",
            &[&self.record.id, &key, &most],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        for (serial, turn, size) in found {
            let priority = i64::from(u8::MAX) - (turn >> TURN_BITS);
            let is_lower = only_higher && in_line.top.is_some_and(|top| priority <= top);
            if is_lower || time.free_at(&terms, in_line.count, now) > now {
                break;
            }
            self.record.sequence += 1;
            let turn = (turn & !SEQUENCE) | self.record.sequence;
            self.step.change("UPDATE task SET state = 1, turn = ?2 WHERE serial = ?1", &[&serial, &turn])?;
            self.record.leave(RowState::Held);
            self.record.enter(RowState::Ready);
            self.moved += size;
            self.ready = true;
            self.keys.pulled += 1;
            in_line = InLine { count: in_line.count + 1, top: in_line.top.max(Some(priority)) };
        }
        Ok(())
    }

    /// Notes when the key is to be looked at though none of its tasks leaves, or when nothing is known of it any more.
    fn note_wait(&mut self, key: &str) -> rusqlite::Result<()> {
        if !self.limits().is_some_and(|limits| limits.timed || limits.key_rate.is_some()) {
            return Ok(());
        }
        let (terms, before, now) = (self.terms(key)?, self.key_time(key)?, self.now_quarters());
        let (in_line, holds) = (self.in_line(key, 0)?.count, self.holds(key, 0)?);
        let tat = terms.rate.map_or(before.tat, |rate| rate.tat(before.tat, now));
        let mut time = KeyTime { looks: None, forgets: None, tat, ..before };
        let at = time.free_at(&terms, 0, now);
        let ends = tat.max(before.until.saturating_mul(4_000));
        if holds && in_line == 0 && at > now {
            time.looks = Some(millis_up(at));
        } else if !holds && in_line == 0 && ends > now && self.running(key, 0, 1)? == 0 {
            time.forgets = Some(millis_up(ends));
        }
        if ends <= now && time.looks.is_none() && self.running(key, 0, 1)? == 0 {
            let drop = "DELETE FROM key_time WHERE queue = ?1 AND key = ?2";
            self.step.change(drop, &[&self.record.id, &key])?;
            return Ok(());
        }
        if (time.looks, time.forgets, time.tat) != (before.looks, before.forgets, before.tat) {
            self.set_key_time(key, time)?;
        }
        Ok(())
    }

    /// Tasks are held though none is in line and none runs: a library that knows no keys has settled what ran. Like heal_keys of
    /// claim_tasks.lua.
    pub(super) fn heal_keys(&mut self) -> rusqlite::Result<()> {
        let others = self.record.count(RowState::Ready) + self.record.count(RowState::Claimed);
        let sweeps = self.limits().is_none_or(|limits| limits.sweep.is_some());
        if sweeps || others > 0 || self.record.count(RowState::Held) == 0 {
            return Ok(());
        }
        if self.first_key()?.is_none() {
            self.limits_mut().sweep = Some("".into());
        }
        Ok(())
    }

    /// Keys whose time has come, and, if a limit has changed, each that holds tasks, some at a time.
    pub(super) fn promote_keys(&mut self) -> rusqlite::Result<()> {
        let Some(limits) = self.limits() else { return Ok(()) };
        let (timed, sweep) = (limits.timed, limits.sweep.clone());
        let look = i64::try_from(KEY_LOOK).unwrap_or(i64::MAX);
        if timed {
            for sql in [
                "SELECT key FROM key_time WHERE queue = ?1 AND looks <= ?2 ORDER BY looks, key LIMIT ?3",
                "SELECT key FROM key_time WHERE queue = ?1 AND forgets <= ?2 ORDER BY forgets, key LIMIT ?3",
            ] {
                let due: Vec<String> =
                    self.step.few(sql, &[&self.record.id, &self.now_ms, &look], |row| row.get(0))?;
                due.iter().for_each(|key| self.change_key(key));
            }
        }
        let Some(mut after) = sweep else { return Ok(()) };
        for _ in 0..look {
            let next: Option<String> = self
                .step
                .connection
                .prepare_cached(
                    "SELECT key FROM task WHERE queue = ?1 AND state = 3 AND parked = 0 AND key > ?2 ORDER BY key LIMIT 1",
                )?
                .query_row((self.record.id, &*after), |row| row.get(0))
                .optional()?;
            let Some(key) = next else {
                self.limits_mut().sweep = None;
                if after.is_empty() {
                    self.record.holds_nothing();
                }
                return Ok(());
            };
            self.change_key(&key);
            after = key.into();
        }
        self.limits_mut().sweep = Some(after);
        Ok(())
    }
}

impl Terms {
    pub(super) fn of(own: Option<OwnLimits>, concurrency: Option<u32>, rate: Option<StoredRate>) -> Self {
        let own_rate = own.and_then(|own| own.rate).map(StoredRate::new);
        Self {
            concurrency: own.and_then(|own| own.concurrency).or(concurrency).map(i64::from),
            rate: own_rate.or(rate),
            weight: own.map_or(1, |own| i64::from(own.weight)),
        }
    }
}

/// Whole milliseconds of a time, and no earlier.
pub(super) fn millis_up(at: Quarters) -> i64 {
    at.div_euclid(4_000) + i64::from(at.rem_euclid(4_000) > 0)
}
