//! Delivering tasks from the front of the line.

use crate::store::sqlite::queue::task::{AFTER_TASK, EXPIRED, Live, SEQUENCE, Task, select_task};
use crate::store::sqlite::queue::work::Work;
use crate::store::{MAX_BATCH, MAX_REPLY_BYTES, PROMOTE_MAX};

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
        while taken.len() < max && expired < PROMOTE_MAX {
            let front = self.front(last, max - taken.len(), bytes)?;
            if front.is_empty() {
                break;
            }
            for (mut main, body) in front {
                if main.is_expired(self.now_ms) {
                    expired += 1;
                    let live = self.with_successor(main)?;
                    let receipt = live.main.receipt;
                    self.die(live, EXPIRED, receipt, false)?;
                    continue;
                }
                main.attempts = main.attempts.saturating_add(1);
                main.receipt = self.next_number();
                bytes += body.len();
                let live = self.with_successor(main.clone())?;
                deliver(self, live)?;
                taken.push((main, body));
            }
        }
        Ok(taken)
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
