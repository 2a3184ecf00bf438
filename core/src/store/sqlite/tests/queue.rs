//! The verbs of queues: what each does to the tables, and what it answers.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::{CLIENT, SECOND, memory, prefixes, soon};
use crate::clock::ManualClock;
use crate::name::TaskId;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;
use crate::verbs::*;

/// How long the tests' claims last.
const LEASE: Duration = Duration::from_secs(30);

/// A queue in memory of its own, and its clock. Every call is followed by a look whether the tables agree.
struct Queue {
    store: SqliteStore,
    clock: ManualClock,
    calls: Cell<u64>,
}

fn queue() -> Queue {
    let (store, clock) = memory();
    Queue { store, clock, calls: Cell::new(0) }
}

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn task(name: &str) -> NewTask {
    NewTask {
        id: id(name),
        body: name.as_bytes().into(),
        due: Due::Now,
        priority: 128,
        max_attempts: 3,
        expires: None,
        on_duplicate: OnDuplicate::Keep,
    }
}

fn nack() -> Verdict {
    Verdict::Nack { delay: Duration::ZERO, reason: "no".into() }
}

fn waiter(seq: u64) -> Option<Waiter> {
    Some(Waiter { client: CLIENT, seq })
}

impl Queue {
    fn ask(&self, verb: QueueVerb) -> QueueReply {
        let request = Request::Queue(QueueRequest { queue: prefixes().queue_name("q").unwrap(), verb });
        let reply = match self.store.perform(&request, soon()).unwrap() {
            Reply::Queue(reply) => reply,
            other => panic!("{other:?}"),
        };
        self.check();
        reply
    }

    /// The counts of the record are right, every successor has a main task, and nobody is in two places.
    fn check(&self) {
        for wrong in [
            "SELECT count(*) FROM queue WHERE scheduled <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 0)",
            "SELECT count(*) FROM queue WHERE ready <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 1)",
            "SELECT count(*) FROM queue WHERE claimed <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 2)",
            "SELECT count(*) FROM queue WHERE parked <> (SELECT count(*) FROM task WHERE queue = queue.id AND state = 3)",
            "SELECT count(*) FROM queue WHERE dead <> (SELECT count(*) FROM dead WHERE queue = queue.id)",
            "SELECT count(*) FROM queue WHERE dead_size <>
               (SELECT coalesce(sum(length(body)), 0) FROM dead WHERE queue = queue.id)",
            "SELECT count(*) FROM task WHERE parked <> (state = 3)",
            "SELECT count(*) FROM task AS next WHERE parked = 1 AND NOT EXISTS
               (SELECT 1 FROM task WHERE queue = next.queue AND id = next.id AND parked = 0 AND receipt <> 0)",
            "SELECT count(*) FROM task WHERE state = 2 AND receipt = 0",
            "SELECT count(*) FROM task WHERE queue NOT IN (SELECT id FROM queue)",
        ] {
            let wrong = wrong.replace("queue = queue.id", "task.queue = queue.id");
            let wrong = wrong.replace("FROM dead WHERE task.", "FROM dead WHERE dead.");
            assert_eq!(self.store.count(&wrong), 0, "{wrong}");
        }
    }

    fn call(&self) -> CallId {
        self.calls.set(self.calls.get() + 1);
        CallId { client: CLIENT, slot: 0, number: self.calls.get() }
    }

    fn enqueue_all(&self, tasks: Vec<NewTask>) -> Vec<EnqueueOutcome> {
        match self.ask(QueueVerb::Enqueue(Enqueue { call: self.call(), tasks: tasks.into() })) {
            QueueReply::Enqueue(outcomes) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    fn enqueue(&self, task: NewTask) -> EnqueueOutcome {
        self.enqueue_all(vec![task])[0]
    }

    /// Enqueues tasks that are due now.
    fn add(&self, names: &[&str]) {
        self.enqueue_all(names.iter().map(|name| task(name)).collect());
    }

    fn claim_of(&self, max: u32) -> Claim {
        Claim { call: self.call(), max, lease: LEASE, waiter: None }
    }

    fn ask_claim(&self, claim: Claim) -> ClaimReply {
        match self.ask(QueueVerb::Claim(claim)) {
            QueueReply::Claim(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn claim(&self, max: u32) -> Vec<ClaimedTask> {
        match self.ask_claim(self.claim_of(max)) {
            ClaimReply::Claimed(tasks) => tasks,
            ClaimReply::Empty { .. } | ClaimReply::Paused { .. } => Vec::new(),
        }
    }

    /// Claims one task, which must be this one; its receipt.
    fn take(&self, name: &str) -> Receipt {
        let claimed = self.claim(1);
        assert_eq!(claimed.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), [name]);
        claimed[0].receipt
    }

    fn settle(&self, name: &str, receipt: Receipt, verdict: Verdict) -> Settled {
        let items = Arc::new([Settlement { id: id(name), receipt, verdict }]);
        match self.ask(QueueVerb::Settle(Settle { items })) {
            QueueReply::Settle(settled) => settled[0],
            other => panic!("{other:?}"),
        }
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Wall time in milliseconds.
    fn now(&self) -> WallMillis {
        crate::clock::Clock::Manual(self.clock.clone()).wall_micros() / 1_000
    }

    fn ids(&self, tasks: &[ClaimedTask]) -> String {
        tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The tasks of an id in words: state, whether a delivery is not settled, attempts, body.
    fn shape(&self, name: &str) -> String {
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

#[test]
fn a_task_goes_through() {
    let queue = queue();
    queue.add(&["a", "b", "c"]);
    let claimed = queue.claim(2);
    assert_eq!(queue.ids(&claimed), "a b");
    assert_eq!(&*claimed[0].body, b"a");
    assert_eq!((claimed[0].attempt, claimed[0].remaining), (1, LEASE));
    assert_eq!(
        queue.settle("a", claimed[0].receipt, Verdict::Ack),
        Settled::Done { late: false, dead: false }
    );
    assert_eq!(queue.shape("a"), "");
    assert_eq!(queue.settle("b", claimed[1].receipt, nack()), Settled::Done { late: false, dead: false });
    assert_eq!(queue.shape("b"), "ready 1 b");
    assert_eq!(queue.ids(&queue.claim(9)), "c b");
    queue.pass(SECOND);
}
