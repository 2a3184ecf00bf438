//! Threads that write at the same time, and share a transaction. Those tests that make threads meet have a process each:
//! a fork of another test would let nobody into the gate until those inside have left.

use std::sync::mpsc;
use std::thread;

use super::queue::enqueue_of;
use super::{Scratch, Stranger, acquire_of, memory, open_file, release_of, soon};
use crate::base::clock::Moment;
use crate::base::fork::testing::alone;
use crate::protocol::{EnqueueOutcome, Failure, FailureKind, QueueReply, Reply, Request};
use crate::store::Store;
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::group::{Part, Served};

/// Threads of a test.
const THREADS: usize = 8;

/// Performs the requests on a thread each, all of them while the connection is busy, so that they meet.
fn at_once(store: &SqliteStore, requests: &[Request], until: Moment) -> Vec<Result<Reply, Failure>> {
    at_once_and(store, requests, until, || ())
}

/// The same; calls `met` when all of them wait, and begin.
fn at_once_and(
    store: &SqliteStore,
    requests: &[Request],
    until: Moment,
    met: impl FnOnce(),
) -> Vec<Result<Reply, Failure>> {
    thread::scope(|scope| {
        let database = store.database.database().unwrap();
        let threads: Vec<_> = store.inside(|_| {
            let threads =
                requests.iter().map(|request| scope.spawn(move || store.perform(request, until))).collect();
            // One of them leads.
            database.group.until_waiting(requests.len() - 1);
            met();
            threads
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// An enqueue of each id, by a client's slot of its own.
fn enqueues(ids: &[String]) -> Vec<Request> {
    (1..).zip(ids).map(|(slot, id)| enqueue_of(slot, id)).collect()
}

fn ids() -> Vec<String> {
    (0..THREADS).map(|number| format!("task{number}")).collect()
}

fn is_added(reply: &Result<Reply, Failure>) -> bool {
    let Ok(Reply::Queue(QueueReply::Enqueue(outcomes))) = reply else { return false };
    matches!(outcomes[..], [EnqueueOutcome::Accepted { .. }])
}

/// Transactions since the store was opened.
fn commits(store: &SqliteStore) -> u32 {
    store.database.with(false, |_, open| Ok(open.commits)).unwrap()
}

#[test]
fn threads_that_write_at_the_same_time_share_a_transaction() {
    if !alone("store::sqlite::tests::group::threads_that_write_at_the_same_time_share_a_transaction") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    let before = commits(&store);
    let mut requests = enqueues(&ids()[2..]);
    requests.push(Request::Acquire(acquire_of("a", 2)));
    requests.push(Request::Acquire(acquire_of("b", 3)));
    let replies = at_once(&store, &requests, soon());
    assert!(replies[..THREADS - 2].iter().all(is_added), "{replies:?}");
    assert_eq!(commits(&store) - before, 1);
    let full = 2;
    assert_eq!(store.count("SELECT synchronous FROM pragma_synchronous"), full, "tasks wait for the disk");
    assert_eq!(store.count("SELECT enqueued FROM queue"), 6);
    assert!(store.try_acquire("a", 4).is_none() && store.try_acquire("b", 4).is_none());
    store.perform(&Request::Release(release_of("b", 3)), soon()).unwrap();
    assert!(store.try_acquire("b", 4).is_some());
}

/// One that fails undoes the others' work; each does it again alone.
#[test]
fn one_that_fails_harms_no_other() {
    if !alone("store::sqlite::tests::group::one_that_fails_harms_no_other") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.sql(
        "CREATE TEMP TRIGGER no_poison BEFORE INSERT ON main.task WHEN NEW.id = 'poison'
           BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let mut ids = ids();
    ids[3] = "poison".into();
    // The connection with the trigger is closed after the failure, which comes second: the first was the shared one.
    let replies = at_once(&store, &enqueues(&ids), soon());
    for (id, reply) in ids.iter().zip(&replies) {
        assert_eq!(is_added(reply), id != "poison", "{id}: {reply:?}");
    }
    assert_eq!(store.count("SELECT enqueued FROM queue"), 7);
}

#[test]
fn another_process_that_writes_holds_all_of_them_up() {
    if !alone("store::sqlite::tests::group::another_process_that_writes_holds_all_of_them_up") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    let replies = at_once(&store, &enqueues(&ids()), store.config.clock.now());
    for reply in replies {
        assert_eq!(reply.unwrap_err().kind, FailureKind::Refused);
    }
    let (met, have_met) = mpsc::channel();
    thread::scope(|scope| {
        let waiting =
            scope.spawn(|| at_once_and(&store, &enqueues(&ids()), soon(), || met.send(()).unwrap()));
        have_met.recv().unwrap();
        writer.sql("COMMIT");
        assert!(waiting.join().unwrap().iter().all(is_added));
    });
    assert_eq!(store.count("SELECT enqueued FROM queue"), 8);
}

#[test]
fn whoever_waits_leads_when_the_leader_goes() {
    let (store, _) = memory();
    let group = &store.database.database().unwrap().group;
    let request = Request::Acquire(acquire_of("a", 1));
    let lead = || match group.join(&request, super::SECOND) {
        Part::Leads(leading) => Ok(leading),
        Part::Served(served) => Err(served),
    };
    thread::scope(|scope| {
        let first = lead().unwrap();
        let second = scope.spawn(|| lead().map(drop).is_ok());
        group.until_waiting(1);
        drop(first);
        assert!(second.join().unwrap());
    });
}

/// As when the leader panics.
#[test]
fn whoever_was_taken_and_got_no_answer_goes_on_alone() {
    let (store, _) = memory();
    let group = &store.database.database().unwrap().group;
    let request = Request::Acquire(acquire_of("a", 1));
    thread::scope(|scope| {
        let Part::Leads(leading) = group.join(&request, super::SECOND) else { panic!() };
        let other = scope.spawn(|| group.join(&request, super::SECOND));
        group.until_waiting(1);
        drop(leading.followers());
        assert!(matches!(other.join().unwrap(), Part::Served(Served::Alone)));
    });
}
