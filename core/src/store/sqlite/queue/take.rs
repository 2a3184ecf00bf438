//! Delivering tasks from the front of the line.

use crate::protocol::{EXPIRE_MAX, EXPIRED, EXPIRED_AFTER, Happened, MAX_BATCH, MAX_REPLY_BYTES};
use crate::store::sqlite::queue::record::How;
use crate::store::sqlite::queue::task::{AFTER_TASK, Live, SEQUENCE, Task, select_task};
use crate::store::sqlite::queue::work::Work;

/// A task with its body.
pub(super) type WithBody = (Task, Box<[u8]>);

impl Work<'_> {
    /// Takes tasks in order, with a new receipt and one more attempt each; `deliver` does the rest with them.
    /// Expired ones die on the way, a limited number of them. The line is taken as it stands: a successor that
    /// comes into it on the way waits for the next call, whatever its priority.
    pub(super) fn take(
        &mut self,
        max: u32,
        deliver: impl Fn(&mut Self, Live) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Vec<WithBody>> {
        let max = usize::try_from(max).unwrap_or(MAX_BATCH).min(MAX_BATCH);
        let (mut taken, mut bytes, mut expired) = (Vec::new(), 0, 0);
        let last = self.record.sequence;
        // What came into line before it does not count: there may be nothing to take but for those that expire here.
        let before = std::mem::take(&mut self.moved);
        'taking: while taken.len() < max && expired < EXPIRE_MAX {
            let front = self.front(last, max - taken.len(), bytes)?;
            if front.is_empty() {
                break;
            }
            for (mut main, body) in front {
                if main.is_expired(self.now_ms) {
                    if expired == EXPIRE_MAX || self.has_moved_enough() {
                        break 'taking;
                    }
                    expired += 1;
                    self.expire(main)?;
                    continue;
                }
                main.attempts = main.attempts.saturating_add(1);
                main.receipt = self.next_receipt();
                self.happen(Happened::Started, &main, "")?;
                bytes += body.len();
                let live = self.with_successor(main.clone())?;
                deliver(self, live)?;
                taken.push((main, body));
            }
        }
        self.moved += before;
        Ok(taken)
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
