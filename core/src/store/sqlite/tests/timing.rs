//! How long verbs take. Not a test: `cargo test --release -- --ignored --nocapture timing`.

use std::time::Instant;

use super::{Scratch, memory, named, open_file};
use crate::store::sqlite::SqliteStore;

const PAIRS: u64 = 20_000;

fn pairs(what: &str, store: &SqliteStore, lock: impl Fn(u64) -> String) {
    let begun = Instant::now();
    for number in 1..=PAIRS {
        let lock = lock(number);
        assert!(store.try_acquire(&lock, number).is_some());
        store.release(&lock, number);
    }
    println!("{what}: {:.2} us per acquire and release", begun.elapsed().as_secs_f64() * 1e6 / PAIRS as f64);
}

#[test]
#[ignore = "prints numbers"]
fn timing() {
    let (store, _) = memory();
    pairs("memory, one lock", &store, |_| "a".into());
    pairs("memory, system clock", &named("timing"), |_| "a".into());
    pairs("memory, a new lock each", &memory().0, |number| format!("n{number}"));
    let begun = Instant::now();
    for number in 1..=PAIRS {
        store.wait_for("w", 2 * number);
        store.wait_for("w", 2 * number + 1);
        store.release("w", 2 * number);
        store.wait_for("w", 2 * number + 1);
        store.release("w", 2 * number + 1);
    }
    println!("memory, hand-off of five verbs: {:.2} us", begun.elapsed().as_secs_f64() * 1e6 / PAIRS as f64);
    let begun = Instant::now();
    for number in 1..=200 {
        assert!(memory().0.try_acquire("a", number).is_some());
    }
    println!("memory, open and first acquire: {:.2} us", begun.elapsed().as_secs_f64() * 1e6 / 200.0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| pairs("memory, two threads with a store each", &memory().0, |_| "a".into()));
        }
    });
    let scratch = Scratch::new();
    pairs("file, one lock", &open_file(&scratch.file()), |_| "a".into());
}
