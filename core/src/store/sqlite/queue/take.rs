//! Delivering tasks from the front of the line.

use crate::protocol::{EXPIRE_MAX, EXPIRED, EXPIRED_AFTER, Happened, MAX_BATCH, MAX_REPLY_BYTES};
use crate::store::sqlite::queue::record::{How, RowState};
use crate::store::sqlite::queue::task::{AFTER_TASK, Live, SEQUENCE, Task, select_task};
use crate::store::sqlite::queue::work::Work;

/// A task with its body.
pub(super) type WithBody = (Task, Box<[u8]>);

impl Work<'_> {
    /// Takes tasks in order, with a new receipt and one more attempt each; `deliver` does the rest with them.
    /// Expired ones die on the way, a limited number of them. The line is taken as it stands: a successor that
    /// comes into it on the way waits for the next call, whatever its priority. When nothing is in line any more, keys
    /// that hold tasks give more than their share.
    pub(super) fn take(
        &mut self,
        max: u32,
        deliver: impl Fn(&mut Self, Live) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Vec<WithBody>> {
        let most = usize::try_from(self.gate().0).unwrap_or(MAX_BATCH);
        let max = usize::try_from(max).unwrap_or(MAX_BATCH).min(MAX_BATCH).min(most);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        // What came into line before it does not count: there may be nothing to take but for those that expire here.
        let before = std::mem::take(&mut self.moved);
        while taken.len() < max {
            let is_empty = self.take_line(max, &mut taken, &mut bytes, &deliver)?;
            let (pulled, wanted) = (self.keys.pulled, if is_empty { max - taken.len() } else { 0 });
            self.write_keys(wanted)?;
            if wanted == 0 || self.keys.pulled == pulled {
                break;
            }
        }
        self.pass(taken.len());
        self.moved += before;
        Ok(taken)
    }

    /// Takes what is in line now; whether that is all.
    fn take_line(
        &mut self,
        max: usize,
        taken: &mut Vec<WithBody>,
        bytes: &mut usize,
        deliver: &impl Fn(&mut Self, Live) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<bool> {
        let (last, mut passed_by) = (self.record.sequence, 0);
        while taken.len() < max && passed_by < EXPIRE_MAX {
            let front = self.front(last, max - taken.len(), *bytes)?;
            if front.is_empty() {
                return Ok(self.front(last, 1, 0)?.is_empty());
            }
            for (mut main, body) in front {
                if main.is_expired(self.now_ms) {
                    if passed_by == EXPIRE_MAX || self.has_moved_enough() {
                        return Ok(false);
                    }
                    passed_by += 1;
                    self.expire(main)?;
                    continue;
                }
                if !self.runs_by_key(&main)? {
                    if passed_by == EXPIRE_MAX {
                        return Ok(false);
                    }
                    passed_by += 1;
                    let held = Task { state: RowState::Held, ..main };
                    self.update(&held, RowState::Ready)?;
                    continue;
                }
                main.attempts = main.attempts.saturating_add(1);
                main.receipt = self.next_receipt();
                self.happen(Happened::Started, &main, "")?;
                *bytes += body.len();
                let live = self.with_successor(Task { left: true, ..main.clone() })?;
                deliver(self, live)?;
                taken.push((main, body));
            }
        }
        Ok(false)
    }

    /// Those that have expired among the first in line, and the first that are due, count no longer: they die.
    pub(super) fn make_room(&mut self) -> rusqlite::Result<()> {
        let limit = i64::try_from(EXPIRE_MAX).unwrap_or(i64::MAX);
        let mut first = self.step.few(
            select_task!(" FROM task WHERE queue = ?1 AND state = 1 ORDER BY turn LIMIT ?2"),
            &[&self.record.id, &limit],
            Task::read,
        )?;
        let left = limit - i64::try_from(first.len()).unwrap_or(limit);
        first.extend(self.step.few(
            select_task!(" FROM task WHERE queue = ?1 AND state = 0 ORDER BY due LIMIT ?2"),
            &[&self.record.id, &left],
            Task::read,
        )?);
        for main in first {
            if main.is_expired(self.now_ms) && !self.has_moved_enough() {
                self.expire(main)?;
            }
        }
        Ok(())
    }

    fn expire(&mut self, main: Task) -> rusqlite::Result<()> {
        let live = self.with_successor(main)?;
        let receipt = live.main.receipt;
        let reason = match &*live.main.reason {
            "" => EXPIRED.to_owned(),
            before => format!("{EXPIRED_AFTER}{before}"),
        };
        self.die(live, &reason, receipt, How::Expired)
    }

    /// The first tasks in line that came no later than `last`, at most `max`, as long as their bodies and the `bytes` before fit in a reply.
    fn front(&self, last: i64, max: usize, bytes: usize) -> rusqlite::Result<Vec<WithBody>> {
        let mut statement = self.step.connection.prepare_cached(select_task!(
            ", body FROM task WHERE queue = ?1 AND state = 1 AND turn & ?2 <= ?3 ORDER BY turn LIMIT ?4"
        ))?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let mut rows = statement.query((self.record.id, SEQUENCE, last, max))?;
        let (mut front, mut bytes) = (Vec::new(), bytes);
        while let Some(row) = rows.next()? {
            let body = row.get_ref(AFTER_TASK)?.as_blob()?;
            bytes += body.len();
            // The first task of a reply goes in whatever its size.
            if bytes > MAX_REPLY_BYTES && bytes > body.len() {
                break;
            }
            front.push((Task::read(row)?, body.into()));
        }
        Ok(front)
    }
}
