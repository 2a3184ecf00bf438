//! What is said about queues besides what was asked: that one is not there, or that a worker waits.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, Running, on_both_stores};

on_both_stores! {
    fn a_queue_that_is_not_there_is_told(place) {
        for args in [&["stats", "nosuch"][..], &["peek", "nosuch"], &["list", "nosuch", "--state", "dead"]] {
            let outcome = place.finish(&[&["queues"], args].concat());
            assert!(outcome.failed(0).contains("no queue \"nosuch\""), "{outcome:?}");
            assert!(!outcome.out.is_empty());
        }
        place.finish(&["queues", "stats", "nosuch", "-q"]).succeeded();
        // Whoever changes a queue whose name is misspelt believes that the real one was changed.
        for args in [
            &["pause", "paused"][..],
            &["configure", "set", "--max-len", "9"],
            &["resume", "nosuch"],
            &["purge", "nosuch", "--yes"],
            &["kick", "nosuch", "--count", "1"],
            &["remove-dead", "nosuch", "--count", "1"],
        ] {
            let outcome = place.finish(&[&["queues"], args].concat());
            assert!(outcome.failed(0).contains(&format!("no queue {:?}", args[1])), "{outcome:?}");
        }
        // One that is empty, paused, or has settings, is there.
        place.finish(&["enqueue", "empty", "a"]).succeeded();
        place.finish(&["queues", "remove", "empty", "a"]).succeeded();
        for name in ["empty", "paused", "set"] {
            place.finish(&["queues", "stats", name]).succeeded();
        }
    }

    fn a_worker_says_that_its_queue_is_paused(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        place.finish(&["queues", "pause", "q"]).succeeded();
        let program = place.stanchion(&["work"]).get_program().to_owned();
        let mut worker = Command::new("sh");
        worker.args(["-c", "exec \"$0\" work q -- touch ran 2>> told"]).arg(program);
        worker.current_dir(place.path(".")).env("STANCHION_URL", place.url());
        let worker = Running::start(worker);
        let told = |words: &str| {
            let told = || fs::read_to_string(place.path("told")).unwrap_or_default();
            eventually(LONG, || told().contains(words));
            fs::write(place.path("told"), "").unwrap();
        };
        told("queue \"q\" is paused: its tasks wait");
        assert!(!place.path("ran").exists());
        place.finish(&["queues", "resume", "q"]).succeeded();
        told("is not paused any more");
        eventually(LONG, || place.path("ran").exists());
        place.finish(&["queues", "pause", "q"]).succeeded();
        told("is paused: its tasks wait");
        worker.signal(Signal::SIGTERM);
        worker.finish().succeeded();
    }
}
