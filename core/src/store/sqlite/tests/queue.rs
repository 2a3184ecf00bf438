//! The verbs of queues: what each does to the tables, and what it answers.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::{CLIENT, SECOND, memory, prefixes, soon};
use crate::base::clock::ManualClock;
use crate::base::name::TaskId;
use crate::protocol::*;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

/// How long the tests' claims last.
pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const CONSUMER: &str = "7 host label";

/// A queue in memory of its own, and its clock. Every call is followed by a look whether the tables agree.
pub(super) struct Queue {
    pub(super) store: SqliteStore,
    pub(super) clock: ManualClock,
    pub(super) calls: Cell<u64>,
}

pub(super) fn queue() -> Queue {
    let (store, clock) = memory();
    Queue { store, clock, calls: Cell::new(0) }
}

pub(super) fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

pub(super) fn task(name: &str) -> NewTask {
    NewTask {
        key: None,
        node: None,
        id: id(name),
        body: name.as_bytes().into(),
        due: Due::Now,
        priority: 128,
        max_attempts: 3,
        expires: None,
        on_duplicate: OnDuplicate::Keep,
    }
}

/// An enqueue of one task, by a slot that no other uses.
pub(super) fn enqueue_of(slot: u32, name: &str) -> Request {
    let call = CallId { client: CLIENT, slot, number: 1 };
    let verb = QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: [task(name)].into() });
    Request::Queue(QueueRequest { queue: prefixes().queue_name("q").unwrap(), verb })
}

pub(super) fn nack() -> Verdict {
    Verdict::Nack { delay: Duration::ZERO, reason: "no".into() }
}

pub(super) fn waiter(seq: u64) -> Option<Waiter> {
    Some(Waiter { client: CLIENT, seq })
}

pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
/// Done, in time, and the task lives or has ended well.
pub(super) const DONE: Settled = Settled::Done { late: false, dead: false };
pub(super) const LATE: Settled = Settled::Done { late: true, dead: false };
pub(super) const DEAD: Settled = Settled::Done { late: false, dead: true };
pub(super) const LATE_DEAD: Settled = Settled::Done { late: true, dead: true };

pub(super) fn ids(tasks: &[ClaimedTask]) -> String {
    tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>().join(" ")
}

pub(super) fn bury() -> Verdict {
    Verdict::Bury { reason: "bad".into() }
}

/// How an enqueue was accepted.
pub(super) fn outcome(accepted: EnqueueOutcome) -> Outcome {
    match accepted {
        EnqueueOutcome::Accepted { outcome, .. } => outcome,
        EnqueueOutcome::Full => panic!("full"),
    }
}

/// When the task of an accepted enqueue is due.
pub(super) fn due(accepted: EnqueueOutcome) -> WallMillis {
    match accepted {
        EnqueueOutcome::Accepted { due, .. } => due,
        EnqueueOutcome::Full => panic!("full"),
    }
}

pub(super) fn version(accepted: EnqueueOutcome) -> Version {
    match accepted {
        EnqueueOutcome::Accepted { version, .. } => version,
        EnqueueOutcome::Full => panic!("full"),
    }
}

impl Queue {
    pub(super) fn ask(&self, verb: QueueVerb) -> QueueReply {
        let reply = self.ask_unchecked(verb);
        self.check();
        reply
    }

    /// Where somebody else has left the counts as they were.
    pub(super) fn ask_unchecked(&self, verb: QueueVerb) -> QueueReply {
        let request = Request::Queue(QueueRequest { queue: prefixes().queue_name("q").unwrap(), verb });
        match self.store.perform(&request, soon()).unwrap() {
            Reply::Queue(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// The counts of the record are right, every successor has a main task, and nobody is in two places.
    pub(super) fn check(&self) {
        for wrong in [
            "SELECT count(*) FROM queue WHERE scheduled <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 0)",
            "SELECT count(*) FROM queue WHERE ready <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 1)",
            "SELECT count(*) FROM queue WHERE claimed <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 2)",
            "SELECT count(*) FROM queue WHERE parked <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 3)",
            "SELECT count(*) FROM queue WHERE dead <> (SELECT count(*) FROM dead WHERE queue = queue.id AND dead.expired = 0)",
            "SELECT count(*) FROM queue WHERE expired <> (SELECT count(*) FROM dead WHERE queue = queue.id AND dead.expired = 1)",
            "SELECT count(*) FROM queue WHERE dead_size <>
               (SELECT coalesce(sum(length(body)), 0) FROM dead WHERE queue = queue.id AND dead.expired = 0)",
            "SELECT count(*) FROM queue WHERE expired_size <>
               (SELECT coalesce(sum(length(body)), 0) FROM dead WHERE queue = queue.id AND dead.expired = 1)",
            "SELECT count(*) FROM queue WHERE held <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 3 AND parked = 0)",
            "SELECT count(*) FROM task WHERE parked = 1 AND state <> 3 OR parked = 0 AND state = 3 AND key = ''",
            "SELECT count(*) FROM task AS next WHERE parked = 1 AND NOT EXISTS
               (SELECT 1 FROM task WHERE queue = next.queue AND id = next.id AND parked = 0)",
            "SELECT count(*) FROM task WHERE state = 2 AND receipt = 0",
            "SELECT count(*) FROM task WHERE queue NOT IN (SELECT id FROM queue)",
        ] {
            // What a purge left is counted nowhere.
            let wrong = wrong.replace("FROM queue WHERE", "FROM queue WHERE key >= ' ' AND");
            let wrong = wrong.replace("queue = queue.id", "task.queue = queue.id");
            let wrong = wrong.replace("FROM dead WHERE task.", "FROM dead WHERE dead.");
            assert_eq!(self.store.count(&wrong), 0, "{wrong}");
        }
    }

    pub(super) fn call(&self) -> CallId {
        self.calls.set(self.calls.get() + 1);
        CallId { client: CLIENT, slot: 0, number: self.calls.get() }
    }

    pub(super) fn enqueue_all(&self, tasks: Vec<NewTask>) -> Vec<EnqueueOutcome> {
        match self.ask(QueueVerb::Enqueue(Enqueue {
            call: self.call(),
            timeout: Duration::ZERO,
            tasks: tasks.into(),
        })) {
            QueueReply::Enqueue(outcomes) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn enqueue(&self, task: NewTask) -> EnqueueOutcome {
        self.enqueue_all(vec![task])[0]
    }

    /// Enqueues tasks that are due now.
    pub(super) fn add(&self, names: &[&str]) {
        self.enqueue_all(names.iter().map(|name| task(name)).collect());
    }

    pub(super) fn claim_of(&self, max: u32) -> Claim {
        Claim { call: self.call(), max, lease: LEASE, waiter: None, consumer: CONSUMER.into() }
    }

    pub(super) fn ask_claim(&self, claim: Claim) -> ClaimReply {
        match self.ask(QueueVerb::Claim(claim)) {
            QueueReply::Claim(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn claim(&self, max: u32) -> Vec<ClaimedTask> {
        match self.ask_claim(self.claim_of(max)) {
            ClaimReply::Claimed(tasks) => tasks,
            ClaimReply::Empty { .. }
            | ClaimReply::Paused { .. }
            | ClaimReply::SchedulesDue(_)
            | ClaimReply::FlowsDue(_) => Vec::new(),
        }
    }

    /// Claims one task, which must be this one; its receipt.
    pub(super) fn take(&self, name: &str) -> Receipt {
        let claimed = self.claim(1);
        assert_eq!(claimed.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), [name]);
        claimed[0].receipt
    }

    pub(super) fn settle(&self, name: &str, receipt: Receipt, verdict: Verdict) -> Settled {
        let items = Arc::new([Settlement { id: id(name), receipt, verdict }]);
        match self.ask(QueueVerb::Settle(Settle { items })) {
            QueueReply::Settle(settled) => settled[0],
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// What is due becomes ready; nothing is taken.
    pub(super) fn promote(&self) {
        assert_eq!(self.claim(0), []);
    }

    pub(super) fn get(&self, name: &str) -> Option<Box<TaskRecord>> {
        match self.ask(QueueVerb::Get(Get { id: id(name) })) {
            QueueReply::Get(record) => record,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn stats(&self) -> QueueStats {
        match self.ask(QueueVerb::Stats) {
            QueueReply::Stats(stats) => *stats,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn pause(&self, paused: bool) {
        assert_eq!(self.ask(QueueVerb::Pause(Pause { paused })), QueueReply::Pause);
    }

    pub(super) fn configure(&self, settings: Configure) {
        assert_eq!(self.ask(QueueVerb::Configure(settings)), QueueReply::Configure);
    }

    /// Wall time in milliseconds.
    pub(super) fn now(&self) -> WallMillis {
        crate::base::clock::Clock::Manual(self.clock.clone()).wall_micros() / 1_000
    }

    /// The tasks of an id in words: state, whether a delivery is not settled, attempts, body.
    pub(super) fn shape(&self, name: &str) -> String {
        self.store.inside(|connection| {
            let sql = "SELECT state, receipt <> 0, attempts, CAST(body AS TEXT), replaces FROM task
                       WHERE id = ?1 ORDER BY parked";
            let mut statement = connection.prepare(sql).unwrap();
            let mut rows = statement.query([name]).unwrap();
            let mut words = String::new();
            while let Some(row) = rows.next().unwrap() {
                let state =
                    ["scheduled", "ready", "claimed", "parked"][usize::from(row.get::<_, u8>(0).unwrap())];
                let running = if row.get(1).unwrap() { " running" } else { "" };
                let replaces = if row.get(4).unwrap() { " replaces" } else { "" };
                let (attempts, body): (i64, String) = (row.get(2).unwrap(), row.get(3).unwrap());
                write!(words, "{state}{running}{replaces} {attempts} {body}, ").unwrap();
            }
            words.trim_end_matches(", ").to_owned()
        })
    }
}

pub(super) fn names(tasks: &[TaskRecord]) -> String {
    tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>().join(" ")
}

pub(super) fn page(
    queue: &Queue,
    state: TaskState,
    from: Option<Place>,
    max: u32,
) -> (String, Option<Place>) {
    match queue.ask(QueueVerb::List(List { state, prefix: "".into(), bodies: true, from, max })) {
        QueueReply::List(ListReply { tasks, next }) => {
            assert!(tasks.iter().all(|task| task.state == state));
            (names(&tasks), next)
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn list(queue: &Queue, state: TaskState) -> String {
    page(queue, state, None, 100).0
}

/// Lets a task die; under this receipt.
pub(super) fn kill(queue: &Queue, name: &str) -> Receipt {
    queue.enqueue(NewTask { priority: 255, ..task(name) });
    let receipt = queue.take(name);
    assert_eq!(queue.settle(name, receipt, bury()), DEAD);
    receipt
}

/// A queue with tasks in all places: two in line, two due and not promoted, one with a lease that ended,
/// one claimed, one scheduled, one dead.
pub(super) fn full_queue() -> Queue {
    let queue = queue();
    kill(&queue, "dead");
    queue.add(&["ended"]);
    queue.take("ended");
    queue.enqueue_all(vec![later("due 2", 29), later("due 1", 28), later("scheduled", 90)]);
    queue.pass(LEASE - SECOND * 2);
    queue.add(&["claimed"]);
    queue.store.sql("UPDATE task SET due = due + 1 WHERE id = 'due 1'");
    queue.take("claimed");
    queue.pass(SECOND * 2);
    queue.add(&["ready 1", "ready 2"]);
    queue
}

/// A task that is due so many seconds later.
pub(super) fn later(name: &str, seconds: u32) -> NewTask {
    NewTask { due: Due::In(SECOND * seconds), ..task(name) }
}

pub(super) fn pop(queue: &Queue, max: u32) -> Vec<TaskRecord> {
    match queue.ask(QueueVerb::Pop(Pop { max })) {
        QueueReply::Pop(Some(tasks)) => tasks,
        other => panic!("{other:?}"),
    }
}

pub(super) fn remove(queue: &Queue, name: &str, version: Option<Version>) -> Removed {
    match queue.ask(QueueVerb::Remove(Remove { id: id(name), version })) {
        QueueReply::Remove(reply) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_goes_through() {
    let queue = queue();
    queue.add(&["a", "b", "c"]);
    let claimed = queue.claim(2);
    assert_eq!(ids(&claimed), "a b");
    assert_eq!(&*claimed[0].body, b"a");
    assert_eq!((claimed[0].attempt, claimed[0].remaining), (1, LEASE));
    assert_eq!(queue.settle("a", claimed[0].receipt, Verdict::Ack), DONE);
    assert_eq!(queue.shape("a"), "");
    assert_eq!(queue.settle("b", claimed[1].receipt, nack()), DONE);
    assert_eq!(queue.shape("b"), "ready 1 b");
    assert_eq!(ids(&queue.claim(9)), "c b");
}
