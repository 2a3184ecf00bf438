//! What runs: its timeout, its cancel, its progress, its result, its history.

use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use stanchion::{
    Backoff, Cancelled, ClaimOptions, ErrorKind, LossReason, OnDuplicate, Outcome, Retry, Task, TaskResult,
    TaskState, Version,
};
use stanchion_tests::faces::{AnyQueue, Stop};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{self, SOON, eventually, task};

use crate::queue_support::{
    assert_nothing, await_one, census, kind, lapse, leased, plain, put, take, take_for, up_to,
};
use crate::queue_worker::{lines, start};
use crate::{ms, secs};

const NOW: Duration = Duration::ZERO;

fn done(result: &[u8], version: Version) -> TaskResult {
    // The variant is not to be made outside: what it shows is compared.
    match result_of(result, version) {
        Some(result) => result,
        None => unreachable!("it is asked of a store"),
    }
}

/// As a store tells it.
fn result_of(result: &[u8], version: Version) -> Option<TaskResult> {
    let store = stanchion::blocking::Client::open("memory:").ok()?;
    let queue = store.queue("q");
    queue.enqueue(plain("x")).ok()?;
    let claim = queue.claim(leased(secs(30))).ok()?.remove(0);
    claim.ack_with(result).ok()?;
    match queue.result("x", None, NOW).ok()? {
        TaskResult::Done { result, .. } => Some(TaskResult::Done { result, version }),
        _ => None,
    }
}

/// A thread that waits for what becomes of a task.
fn asker(queue: &AnyQueue, id: &'static str, version: Option<Version>) -> wait::Task<TaskResult> {
    let queue = queue.clone();
    task(move || queue.result(id, version, secs(60)).expect("what became of it"))
}

fn short(timeout: Duration) -> Task {
    plain("a").timeout(timeout).backoff(Backoff::list([NOW]))
}

on_every_store! {
    fn a_kind_and_what_a_task_says_of_its_runs_travel_with_it(bench) {
        let queue = bench.client().queue("q");
        let backoff = Backoff::exponential(secs(2)).max(secs(60));
        let made = plain("a").kind("send-welcome").timeout(secs(20)).backoff(backoff.clone()).header("h", "v");
        queue.enqueue(made).unwrap();
        let told = queue.task("a");
        assert_eq!(told.kind.as_deref(), Some("send-welcome"));
        assert_eq!((told.timeout, told.backoff), (Some(secs(20)), Some(backoff)));
        assert_eq!(told.headers.len(), 1, "the library's own are no headers: {:?}", told.headers);
        let claim = take(&queue);
        assert_eq!((claim.kind(), claim.payload()), (Some("send-welcome"), b"a".as_slice()));
        assert_eq!(claim.headers().len(), 1);
        claim.ack().unwrap();
        put(&queue, &["b"]);
        assert_eq!(take(&queue).kind(), None);
    }

    fn a_failed_task_waits_for_as_long_as_its_backoff_says(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").backoff(Backoff::list([NOW, secs(3600)]))).unwrap();
        take(&queue).nack(Retry::Backoff, "first").unwrap();
        let claim = await_one(&queue);
        claim.nack(Retry::Backoff, "second").unwrap();
        let next = queue.stats().unwrap().next_due.unwrap();
        assert!(next > secs(3500) && next <= secs(3600), "{next:?}");
    }

    fn the_last_five_failures_are_kept_with_the_task(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(7)).unwrap();
        assert_eq!(queue.task("a").failures, []);
        let before = SystemTime::now() - secs(5);
        for number in 1..=7 {
            take(&queue).nack_now(&format!("no {number}")).unwrap();
        }
        let dead = queue.task("a");
        assert_eq!(dead.state, TaskState::Dead);
        let reasons: Vec<_> = dead.failures.iter().map(|failure| &*failure.reason).collect();
        assert_eq!(reasons, ["no 3", "no 4", "no 5", "no 6", "no 7"]);
        assert!(dead.failures.is_sorted_by_key(|failure| failure.at));
        assert!(dead.failures[0].at >= before && dead.failures[4].at <= dead.died.unwrap());
    }

    fn the_end_of_a_lease_and_a_bury_are_failures_too(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let late = take_for(&queue, ms(50));
        lapse(&queue, "a");
        take(&queue).bury("hopeless").unwrap();
        let dead = queue.task("a");
        let reasons: Vec<_> = dead.failures.iter().map(|failure| &*failure.reason).collect();
        assert_eq!(reasons, ["the lease ended", "hopeless"]);
        assert_eq!(kind(late.ack()), ErrorKind::StaleReceipt);
    }

    fn a_run_that_takes_longer_than_its_timeout_has_failed(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(short(ms(80))).unwrap();
        let claim = queue.claim(ClaimOptions::new()).unwrap().remove(0);
        assert!(claim.wait_lost(SOON), "it is told");
        assert_eq!(claim.loss(), Some(LossReason::TimedOut));
        let again = await_one(&queue);
        assert_eq!((again.id(), again.attempt()), ("a", 2));
        assert_eq!(queue.task("a").reason, "timeout");
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        again.ack().unwrap();
    }

    fn a_worker_gives_a_timeout_to_tasks_that_say_none(bench) {
        let queue = bench.client().queue("q");
        let within = leased(secs(60)).timeout(ms(80));
        for (made, times_out) in [(plain("a").max_attempts(1), true), (short(secs(3600)), false)] {
            queue.enqueue(made).unwrap();
            let claim = queue.claim(within.clone()).unwrap().remove(0);
            if times_out {
                assert!(claim.wait_lost(SOON));
                eventually(SOON, || queue.task("a").state == TaskState::Dead);
                assert_eq!(queue.task("a").reason, "timeout");
            } else {
                assert!(claim.remaining() > secs(50), "the task's own counts");
                claim.ack().unwrap();
            }
        }
    }

    fn a_cancelled_task_that_waits_is_gone(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many([plain("ready"), plain("later").delay(secs(60))]).unwrap();
        for id in ["ready", "later"] {
            assert_eq!(queue.cancel(id).unwrap(), Cancelled::Removed);
        }
        assert_eq!(queue.cancel("ready").unwrap(), Cancelled::Absent);
        assert_eq!(census(&queue), [0; 4]);
        let throttled = plain("t").on_duplicate(OnDuplicate::Throttle { window: secs(60) });
        queue.enqueue(throttled.clone()).unwrap();
        queue.cancel("t").unwrap();
        assert_eq!(queue.enqueue(throttled).unwrap().outcome, Outcome::Added, "its window went with it");
    }

    fn a_cancelled_run_is_told_and_ends_with_whatever_it_says(bench) {
        let queue = bench.client().queue("q");
        for number in 0..4 {
            put(&queue, &["a"]);
            let claim = queue.claim(leased(secs(3)).renew(true)).unwrap().remove(0);
            queue.enqueue(plain("a")).unwrap();
            assert_eq!(queue.cancel("a").unwrap(), Cancelled::Running);
            assert!(queue.task("a").cancelled && queue.task("a").successor_due.is_none());
            assert!(claim.wait_lost(SOON), "at the next renewal");
            assert_eq!(claim.loss(), Some(LossReason::Cancelled));
            match number {
                0 => claim.ack(),
                1 => claim.nack_now("no"),
                2 => claim.bury("no"),
                _ => claim.put_back(),
            }
            .unwrap();
            assert_eq!(census(&queue), [0; 4]);
        }
        assert_eq!(queue.stats().unwrap().died, 0);
    }

    fn a_cancelled_run_that_says_nothing_ends_with_its_lease(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(50));
        queue.cancel("a").unwrap();
        eventually(SOON, || queue.claim(up_to(1)).unwrap().is_empty() && queue.get("a").unwrap().is_none());
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
    }

    fn what_is_enqueued_after_a_cancel_is_a_new_task(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        queue.cancel("a").unwrap();
        assert_eq!(queue.enqueue(plain("a").payload("new")).unwrap().outcome, Outcome::Successor);
        assert_nothing(&queue);
        claim.nack(Retry::After(secs(3600)), "no").unwrap();
        let next = take(&queue);
        assert_eq!((next.payload(), next.attempt()), (b"new".as_slice(), 1));
    }

    fn a_worker_tells_the_handler_of_a_cancel_and_the_task_is_not_tried_again(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let (send, told) = mpsc::channel();
        let (begun, begins) = mpsc::channel();
        let stop = Stop::default();
        let worker = queue.worker(&stop, move |claim| {
            begun.send(()).unwrap();
            eventually(SOON, || !claim.is_valid());
            Err("told to end".into())
        });
        let working = start(worker.lease(secs(3)).on_event(lines(send)));
        begins.recv_timeout(SOON).unwrap();
        assert_eq!(queue.cancel("a").unwrap(), Cancelled::Running);
        eventually(SOON, || queue.get("a").unwrap().is_none());
        stop.stop();
        assert_eq!(working.join(), [0, 0, 0, 1]);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["started a 1", "lost a 1"]);
    }

    fn progress_is_shown_until_the_run_ends(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        claim.progress(b"half").unwrap();
        claim.progress(b"most").unwrap();
        assert_eq!(queue.task("a").progress, b"most");
        assert_eq!(queue.all(TaskState::Claimed)[0].progress, b"most");
        assert_eq!(kind(claim.progress(&[0; 4097])), ErrorKind::InvalidArgument);
        assert_eq!(queue.task("a").progress, b"most");
        claim.nack_now("no").unwrap();
        assert_eq!(queue.task("a").progress, b"");
        let again = take(&queue);
        assert_eq!(queue.task("a").progress, b"");
        assert_eq!(kind(claim.progress(b"late")), ErrorKind::LeaseLost);
        again.ack().unwrap();
    }

    fn progress_renews_the_lease(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = queue.claim(leased(secs(30))).unwrap().remove(0);
        claim.extend(secs(600)).unwrap();
        claim.progress(b"x").unwrap();
        assert!(claim.remaining() > secs(500), "it never shortens it");
        claim.ack().unwrap();
    }

    fn a_result_is_there_after_the_ack(bench) {
        let queue = bench.client().queue("q");
        let version = queue.enqueue(plain("a")).unwrap().version;
        assert_eq!(queue.result("a", Some(version), NOW).unwrap(), TaskResult::Pending);
        let claim = take(&queue);
        assert_eq!(queue.result("a", None, NOW).unwrap(), TaskResult::Pending);
        claim.ack_with(b"\x00\xffdone\n").unwrap();
        claim.ack_with(b"another").unwrap();
        let expected = done(b"\x00\xffdone\n", version);
        assert_eq!(queue.result("a", Some(version), NOW).unwrap(), expected);
        assert_eq!(queue.result("a", None, NOW).unwrap(), expected);
        assert_eq!(queue.result("b", None, NOW).unwrap(), TaskResult::Gone);
        let next = queue.enqueue(plain("a")).unwrap().version;
        assert_eq!(queue.result("a", Some(next), NOW).unwrap(), TaskResult::Pending, "that of the later task");
        assert_eq!(queue.result("a", Some(version), NOW).unwrap(), expected);
        take(&queue).ack().unwrap();
        assert_eq!(queue.result("a", Some(next), NOW).unwrap(), TaskResult::Gone, "it gave none");
    }

    fn who_waits_for_a_result_is_told_at_once(bench) {
        let (queue, other) = (bench.client().queue("q"), bench.client().queue("q"));
        let version = queue.enqueue(plain("a")).unwrap().version;
        let askers = [asker(&other, "a", Some(version)), asker(&queue, "a", None)];
        let claim = take(&queue);
        claim.ack_with(b"r").unwrap();
        for asker in askers {
            assert_eq!(asker.join(), done(b"r", version));
        }
    }

    fn a_wait_for_a_result_ends_with_the_task_however_that_ends(bench) {
        let queue = bench.client().queue("q");
        for number in 0..4 {
            let version = queue.enqueue(plain("a")).unwrap().version;
            let waiting = asker(&queue, "a", Some(version));
            let claim = take(&queue);
            match number {
                0 => claim.ack().unwrap(),
                1 => claim.bury("hopeless").unwrap(),
                2 => drop(queue.remove("a", None).unwrap()),
                _ => {
                    queue.cancel("a").unwrap();
                    claim.nack_now("no").unwrap();
                }
            }
            let dead = matches!(waiting.join(), TaskResult::Dead { reason, .. } if reason == "hopeless");
            assert_eq!(dead, number == 1);
        }
    }

    fn a_wait_that_is_over_says_that_it_is_pending(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        assert_eq!(queue.result("a", None, ms(60)).unwrap(), TaskResult::Pending);
        assert_eq!(kind(queue.result("", None, NOW)), ErrorKind::InvalidArgument);
        assert_eq!(kind(queue.result("a", None, Duration::MAX)), ErrorKind::InvalidArgument);
    }

    fn a_result_is_kept_for_as_long_as_the_task_says(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many([plain("short").keep_result(ms(30)), plain("long").keep_result(secs(3600))]).unwrap();
        for claim in queue.claim(up_to(2)).unwrap() {
            claim.ack_with(b"r").unwrap();
        }
        eventually(SOON, || queue.result("short", None, NOW).unwrap() == TaskResult::Gone);
        assert!(matches!(queue.result("long", None, NOW).unwrap(), TaskResult::Done { .. }));
        queue.purge().unwrap();
        assert_eq!(queue.result("long", None, NOW).unwrap(), TaskResult::Gone);
    }

    fn a_result_that_is_too_large_is_refused_whole(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let most = vec![7; 1 << 20];
        assert_eq!(kind(claim.ack_with(&[most.clone(), vec![7]].concat())), ErrorKind::InvalidArgument);
        assert!(claim.is_valid());
        claim.ack_with(&most).unwrap();
        assert!(matches!(queue.result("a", None, NOW).unwrap(), TaskResult::Done { result, .. } if result == most));
    }

    fn a_late_ack_with_a_result_after_the_lease_gives_it_all_the_same(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let claim = take_for(&queue, ms(50));
        lapse(&queue, "a");
        assert_nothing(&queue);
        assert_eq!(queue.task("a").state, TaskState::Dead);
        claim.ack_with(b"late").unwrap();
        assert!(matches!(queue.result("a", None, NOW).unwrap(), TaskResult::Done { .. }));
        assert_eq!(census(&queue), [0; 4]);
    }
}
