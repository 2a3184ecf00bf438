//! get, stats, consumers

use std::collections::BTreeMap;
use std::time::Duration;

use stanchion::name::TaskId;
use stanchion::protocol::{ConsumerReply, Gate, QueueReply, QueueStats, TaskRecord, TaskState};

use super::{Live, Model, Place, Task};

impl Model {
    pub(super) fn get(&self, id: &TaskId) -> Option<TaskRecord> {
        let Some(Live { main, successor }) = self.live.get(id) else {
            let newest = self.dead.iter().filter(|dead| dead.id == *id).max_by_key(|dead| dead.receipt)?;
            let record = self.record(id, &newest.task, TaskState::Dead);
            return Some(TaskRecord { receipt: newest.receipt, died: newest.died, ..record });
        };
        let successor_due = successor.as_ref().map(|successor| successor.due);
        Some(TaskRecord { successor_due, ..self.record(id, main, self.state(main)) })
    }

    /// A task that is due counts as ready, promoted or not; so does one whose lease has ended.
    fn state(&self, task: &Task) -> TaskState {
        match task.place {
            Place::Claimed(ends) if ends > self.now.boot => TaskState::Claimed,
            Place::Scheduled if task.due > self.now.ms() => TaskState::Scheduled,
            _ => TaskState::Ready,
        }
    }

    pub(super) fn record(&self, id: &TaskId, task: &Task, state: TaskState) -> TaskRecord {
        let remaining = match task.place {
            Place::Claimed(ends) if state == TaskState::Claimed => ends.saturating_sub(self.now.boot),
            _ => 0,
        };
        TaskRecord {
            key: None,
            id: id.clone(),
            state,
            body: task.body.clone(),
            size: task.body.len() as u64,
            version: task.version,
            due: task.due,
            priority: task.priority,
            attempts: task.attempts,
            max_attempts: task.max_attempts,
            expires: task.expires,
            receipt: task.receipt,
            remaining: Duration::from_micros(remaining),
            reason: task.reason.clone(),
            consumer: task.consumer.clone(),
            died: 0,
            successor_due: None,
            failures: task.failures.clone(),
            // No simulated worker says how far it has come.
            progress: [].into(),
            cancelled: task.cancelled,
        }
    }

    /// Who waits is left to the calm part of a schedule.
    pub(super) fn consumers(&self, got: &QueueReply) -> QueueReply {
        let QueueReply::Consumers(got) = got else { return QueueReply::Purge(0) };
        let mut consumers: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for one in got.iter().filter(|one| one.waiters > 0) {
            consumers.entry(&one.consumer).or_default().0 = one.waiters;
        }
        for live in self.live.values().filter(|live| self.state(&live.main) == TaskState::Claimed) {
            consumers.entry(&live.main.consumer).or_default().1 += 1;
        }
        let told = |(consumer, (waiters, claims)): (&str, _)| ConsumerReply {
            consumer: consumer.to_owned(),
            waiters,
            claims,
        };
        QueueReply::Consumers(consumers.into_iter().map(told).collect())
    }

    pub(super) fn stats(&self, got: &QueueReply) -> QueueReply {
        let QueueReply::Stats(got) = got else { return QueueReply::Purge(0) };
        let count = |state| self.live.values().filter(|live| self.state(&live.main) == state).count() as u64;
        QueueReply::Stats(Box::new(QueueStats {
            scheduled: count(TaskState::Scheduled),
            ready: count(TaskState::Ready),
            claimed: count(TaskState::Claimed),
            dead: self.dead.len() as u64,
            successors: self.live.values().filter(|live| live.successor.is_some()).count() as u64,
            paused: self.paused,
            waiters: got.waiters,
            enqueued: self.counts.enqueued,
            acked: self.counts.acked,
            retried: self.counts.retried,
            died: self.counts.died,
            next_due: got.next_due,
            settings: got.settings.clone(),
            gate: if self.paused { Gate::Paused } else { Gate::Open },
            ..QueueStats::default()
        }))
    }
}
