//! Sleeping until the file is written to, where the system tells of that.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{CLIENT, SECOND, Scratch, Stranger, open_file};
use crate::store::Hints;
use crate::store::sqlite::bell::Bell;
use crate::store::sqlite::hints::FileHints;
use crate::store::sqlite::watch::Watch;

#[test]
fn a_quiet_file_is_looked_at_when_somebody_writes() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    store.wait_for("a", 2);
    let mut hints = FileHints::open(store.database.clone(), CLIENT, Arc::clone(&store.bell));
    let until_asleep = |hints: &mut FileHints| {
        let deadline = Instant::now() + 60 * SECOND;
        while !hints.is_asleep() {
            assert!(Instant::now() < deadline);
            hints.read(Duration::from_millis(30), &mut |_| panic!("nobody was hinted")).unwrap();
        }
    };
    until_asleep(&mut hints);
    assert!(!hints.nap(Duration::from_millis(1)) && !hints.is_due());
    // What this process writes wakes it as well: it cannot tell.
    store.try_acquire("b", 1).unwrap();
    assert!(!hints.nap(20 * SECOND) && hints.is_due());
    until_asleep(&mut hints);
    Stranger::open(&scratch.file()).sql("UPDATE waiter SET offered = 1");
    let mut heard = Vec::new();
    hints.read(20 * SECOND, &mut |seq| heard.push(seq)).unwrap();
    assert_eq!(heard, [2]);
}

/// One that sleeps until the file is written to hears it as well.
#[test]
fn the_bell_ends_a_sleep_on_the_file() {
    let scratch = Scratch::new();
    let bell = Bell::default();
    std::fs::write(scratch.file(), "").unwrap();
    let watch = Watch::open().unwrap();
    bell.heard_by(watch.ear());
    assert!(watch.watch(&scratch.file()));
    let begun = Instant::now();
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| watch.sleep(20 * SECOND));
        bell.ring();
        assert!(!sleeper.join().unwrap());
    });
    assert!(begun.elapsed() < 10 * SECOND);
    assert!(bell.wait(Duration::ZERO));
}
