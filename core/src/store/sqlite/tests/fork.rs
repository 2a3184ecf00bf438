//! Forks: both sides go on with a file, and neither with the other's memory.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Scratch, acquire_of, memory, open_file, refusal, soon};
use crate::base::error::ErrorKind;
use crate::base::fork::fork_for_exec;
use crate::base::fork::testing::{alone, in_bypassing_child, in_child};
use crate::protocol::{FailureKind, Request};
use crate::store::Store;
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::database::is_connected;

const CHILDREN: u64 = 10;
const LOCKS: u64 = 20;

/// Takes locks that nobody else takes: each is a commit that must not be lost.
fn take_locks(store: &SqliteStore, who: &str) -> bool {
    (0..LOCKS).all(|number| store.try_acquire(&format!("{who}-{number}"), 1).is_some())
}

fn is_forked(store: &SqliteStore) -> bool {
    let result = store.perform(&Request::Acquire(acquire_of("b", 2)), soon());
    result.is_err_and(|failure| failure.kind == FailureKind::Final(ErrorKind::Forked))
}

#[test]
fn parent_and_children_go_on_with_one_file_and_lose_no_commit() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let (done, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Several, so that they share transactions.
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let turn = taken.fetch_add(1, Ordering::Relaxed);
                    assert!(take_locks(&store, &format!("parent{turn}")));
                }
            });
        }
        for child in 0..CHILDREN {
            assert!(in_child(|| {
                take_locks(&store, &format!("old{child}"))
                    && take_locks(&open_file(&scratch.file()), &format!("new{child}"))
            }));
        }
        done.store(true, Ordering::Relaxed);
    });
    let expected = LOCKS * (2 * CHILDREN + taken.load(Ordering::Relaxed));
    assert_eq!(store.count("SELECT count(*) FROM lock"), i64::try_from(expected).unwrap());
    let sound: String =
        store.inside(|c| c.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap());
    assert_eq!(sound, "ok");
}

#[test]
fn what_a_child_holds_excludes_the_parent_and_outlives_the_child() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    assert!(store.try_acquire("mine", 1).is_some());
    assert!(in_child(|| store.try_acquire("mine", 2).is_none() && store.try_acquire("childs", 2).is_some()));
    assert!(store.try_acquire("mine", 3).is_none());
    assert!(store.try_acquire("childs", 3).is_none());
}

#[test]
fn no_connection_is_open_while_the_process_forks() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    assert!(store.try_acquire("a", 1).is_some());
    // A fork of another test may have closed it again.
    while !is_connected(&scratch.file()) {
        assert!(store.try_acquire("a", 1).is_some());
    }
    assert!(in_child(|| !is_connected(&scratch.file()) && !has_open(&scratch.file())));
    assert!(store.try_acquire("a", 2).is_none());
}

#[test]
fn the_connection_stays_open_while_another_program_is_started() {
    // A fork of another test would close it.
    if !alone("store::sqlite::tests::fork::the_connection_stays_open_while_another_program_is_started") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    assert!(store.try_acquire("a", 1).is_some());
    // A child that goes on rather than execute a program has the parent's descriptors, and is refused.
    let child = || has_open(&scratch.file()) && is_forked(&store) && in_child(|| is_forked(&store));
    assert!(fork_for_exec(|| in_child(child)));
    assert!(is_connected(&scratch.file()));
    assert!(store.try_acquire("a", 2).is_none());
    // Other forks are as before.
    assert!(in_child(|| !has_open(&scratch.file()) && store.try_acquire("b", 3).is_some()));
    assert!(store.try_acquire("b", 4).is_none());
}

/// Whether this process has a descriptor of the file or of its side files.
fn has_open(path: &Path) -> bool {
    let path = path.to_str().unwrap();
    let open =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.into_iter().any(|open| open.to_string_lossy().starts_with(path))
}

#[test]
fn a_memory_store_stays_with_the_parent() {
    let (store, _) = memory();
    assert!(store.try_acquire("a", 1).is_some());
    assert!(in_child(|| is_forked(&store)));
    assert!(in_child(|| memory().0.try_acquire("a", 1).is_some()));
    assert!(store.try_acquire("a", 2).is_none());
}

#[test]
fn a_fork_behind_the_handlers_back_gives_no_access() {
    if !alone("store::sqlite::tests::fork::a_fork_behind_the_handlers_back_gives_no_access") {
        return;
    }
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    assert!(store.try_acquire("a", 1).is_some());
    assert!(in_bypassing_child(|| {
        let closed = open_copy_is_forked(&store);
        closed && refusal_is_forked(&scratch.file())
    }));
    assert!(store.try_acquire("a", 2).is_none());
    assert_eq!(store.count("SELECT count(*) FROM lock"), 1);
}

fn open_copy_is_forked(store: &SqliteStore) -> bool {
    let copy = store.clone();
    let answer = is_forked(&copy);
    drop(copy);
    answer
}

fn refusal_is_forked(path: &Path) -> bool {
    refusal(path).kind == FailureKind::Final(ErrorKind::Forked)
}
