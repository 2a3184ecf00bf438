//! Queues on `memory:` with a clock that the test moves: what takes long, and to the millisecond.

use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use stanchion::{
    Backoff, ErrorKind, LossReason, Missed, OnDuplicate, Outcome, Retry, Schedule, Task, TaskState,
};
use stanchion_tests::faces::{AnyQueue, Stop};
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{assert_nothing, census, claimer, ids, kind, leased, plain, put, take, take_for};
use crate::queue_worker::{lines, start};
use crate::{ms, secs};

/// The store's time.
fn wall_of(queue: &AnyQueue) -> SystemTime {
    let now = queue.enqueue(plain("now")).unwrap().due.unwrap();
    queue.remove("now", None).unwrap();
    now
}

fn days(days: u64) -> Duration {
    secs(days * 24 * 3_600)
}

on_both_faces! {
    fn a_task_is_due_to_the_millisecond(fixture) {
        let queue = fixture.one.queue("q");
        queue.enqueue(plain("a").delay(days(300))).unwrap();
        fixture.clock.advance(days(300) - ms(1));
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
        assert_eq!(queue.stats().unwrap().next_due, Some(ms(1)));
        assert_nothing(&queue);
        fixture.clock.advance(ms(1));
        assert_eq!(queue.task("a").state, TaskState::Ready);
        take(&queue).ack().unwrap();
    }

    fn what_became_due_first_comes_first_whatever_was_enqueued_first(fixture) {
        let queue = fixture.one.queue("q");
        for (id, delay) in [("c", 30), ("a", 10), ("b", 20), ("b2", 20)] {
            queue.enqueue(plain(id).delay(secs(delay))).unwrap();
        }
        assert_eq!(ids(&queue.all(TaskState::Scheduled)), ["a", "b", "b2", "c"]);
        fixture.clock.advance(secs(60));
        assert_eq!(ids(&queue.peek(10).unwrap()), ["a", "b", "b2", "c"]);
        for id in ["a", "b", "b2", "c"] {
            let claim = take(&queue);
            assert_eq!(claim.id(), id);
            claim.ack().unwrap();
        }
    }

    fn what_a_run_says_when_its_timeout_is_over_comes_too_late(fixture) {
        let queue = fixture.one.queue("q");
        // Whoever comes first, the handler or the keeper.
        for round in 0..20 {
            let id = format!("t{round}");
            queue.enqueue(plain(&id).timeout(secs(5)).backoff(Backoff::list([secs(3_600)]))).unwrap();
            let claim = take_for(&queue, secs(30));
            fixture.clock.advance(secs(5));
            assert_eq!(kind(claim.ack_with(b"late")), ErrorKind::StaleReceipt);
            eventually(SOON, || queue.task(&id).reason == "timeout");
            assert_eq!(queue.task(&id).state, TaskState::Scheduled);
            queue.remove(&id, None).unwrap();
        }
        assert_eq!(queue.stats().unwrap().acked, 0);
    }

    fn a_worker_says_what_was_missed_while_nobody_worked(fixture) {
        let queue = fixture.one.queue("q");
        for (id, missed) in [("last", Missed::Last), ("skip", Missed::Skip), ("all", Missed::All(99))] {
            queue.schedule(Schedule::new(id, "every 1h").missed(missed)).unwrap();
        }
        fixture.clock.advance(secs(10 * 3_600 + 1_800));
        let (send, told) = mpsc::channel();
        let worker = queue.worker(&Stop::default(), |_| Ok(())).until_empty().on_event(lines(send));
        assert_eq!(start(worker).join(), [11, 0, 0, 0], "one of last, ten of all");
        let mut told: Vec<String> = told.iter().filter(|line| line.contains("missed")).collect();
        told.sort();
        assert_eq!(told, ["last missed 9, fired 1, late by 1800s", "skip missed 10, fired 0, late by 0ns"]);
    }

    fn a_claims_lease_has_its_margin_and_its_store_the_full_time(fixture) {
        let queue = fixture.one.queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, secs(30));
        assert_eq!(claim.remaining(), ms(30_000 - 302));
        fixture.clock.advance(ms(29_697));
        assert!(claim.is_valid());
        fixture.clock.advance(ms(1));
        assert!(!claim.is_valid());
        assert_eq!(claim.loss(), Some(LossReason::Expired));
        assert_nothing(&queue);
        assert_eq!(queue.task("a").lease_left, ms(302));
        fixture.clock.advance(ms(302));
        let again = take(&fixture.two.queue("q"));
        assert_eq!(again.attempt(), 2);
        assert_eq!(kind(claim.ack()), ErrorKind::StaleReceipt);
        again.ack().unwrap();
    }

    fn a_claim_is_renewed_for_an_hour_at_most_unless_told(fixture) {
        let queue = fixture.one.queue("q");
        put(&queue, &["a"]);
        let claim = queue.claim(stanchion::ClaimOptions::new()).unwrap().remove(0);
        for _ in 0..297 {
            fixture.clock.advance(secs(12));
            eventually(SOON, || claim.remaining() > secs(25));
        }
        // 36 s of the hour are left; the last renewal is for no more than that.
        fixture.clock.advance(secs(12));
        eventually(SOON, || claim.remaining() > secs(23));
        fixture.clock.advance(secs(24));
        assert_eq!(claim.loss(), Some(LossReason::MaxHold));
        fixture.clock.advance(secs(31));
        assert_eq!(take(&queue).attempt(), 2);
    }

    fn a_throttle_window_counts_from_the_accepted_enqueue_alone(fixture) {
        let queue = fixture.one.queue("q");
        let throttled = || Task::new("a").on_duplicate(OnDuplicate::Throttle { window: secs(60) });
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Added);
        take(&queue).ack().unwrap();
        fixture.clock.advance(secs(30));
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Added, "keep opens no window");
        fixture.clock.advance(ms(29_999));
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
        fixture.clock.advance(ms(1));
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Kept, "outside of it as keep");
        fixture.clock.advance(ms(59_999));
        assert_eq!(queue.enqueue(throttled()).unwrap().outcome, Outcome::Throttled);
    }

    fn debounce_moves_the_due_on_until_max_wait_after_the_first(fixture) {
        let queue = fixture.one.queue("q");
        let debounced = || plain("a").delay(secs(10)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(25) });
        let first = queue.enqueue(debounced()).unwrap();
        assert_eq!(first.outcome, Outcome::Added);
        let start = first.due.unwrap() - secs(10);
        for (passed, due) in [(8, 18), (16, 25), (24, 25)] {
            fixture.clock.advance(secs(8));
            let enqueued = queue.enqueue(debounced()).unwrap();
            assert_eq!(enqueued.outcome, Outcome::Replaced, "after {passed} s");
            assert_eq!(enqueued.due, Some(start + secs(due)), "after {passed} s");
            assert_nothing(&queue);
        }
        fixture.clock.advance(secs(1));
        let claim = take(&queue);
        assert_eq!(claim.due(), start + secs(25));
        claim.ack().unwrap();
        let again = queue.enqueue(debounced()).unwrap();
        assert_eq!(again.due, Some(start + secs(35)), "the next life waits anew");
    }

    fn debounce_brings_a_ready_task_back_but_not_past_its_max_wait(fixture) {
        let queue = fixture.one.queue("q");
        let debounced = || plain("a").delay(secs(10)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(15) });
        let start = queue.enqueue(debounced()).unwrap().due.unwrap() - secs(10);
        fixture.clock.advance(secs(12));
        assert_eq!(queue.task("a").state, TaskState::Ready);
        assert_eq!(queue.enqueue(debounced()).unwrap().due, Some(start + secs(15)));
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
        fixture.clock.advance(secs(8));
        assert_eq!(queue.enqueue(debounced()).unwrap().due, Some(start + secs(15)), "due already, and stays so");
        assert_eq!(queue.task("a").state, TaskState::Ready);
        take(&queue).ack().unwrap();
    }

    fn the_first_debounce_is_bounded_by_max_wait_too(fixture) {
        let queue = fixture.one.queue("q");
        let task = plain("a").delay(secs(600)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(5) });
        queue.enqueue(task).unwrap();
        fixture.clock.advance(secs(5));
        take(&queue).ack().unwrap();
    }

    fn a_debounced_successor_counts_from_its_own_first(fixture) {
        let queue = fixture.one.queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, secs(3_600));
        fixture.clock.advance(secs(100));
        let debounced = || plain("a").delay(secs(10)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(15) });
        let first = queue.enqueue(debounced()).unwrap();
        assert_eq!(first.outcome, Outcome::Successor);
        let start = first.due.unwrap() - secs(10);
        fixture.clock.advance(secs(8));
        let second = queue.enqueue(debounced()).unwrap();
        assert_eq!((second.outcome, second.due), (Outcome::Replaced, Some(start + secs(15))));
        claim.ack().unwrap();
        assert_eq!(queue.task("a").due, start + secs(15));
    }

    fn a_failure_begins_a_new_burst(fixture) {
        for ending in ["nack", "lease end"] {
            let queue = fixture.one.queue(&ending.replace(' ', "-"));
            let debounced = || plain("a").delay(secs(10)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(15) });
            queue.enqueue(debounced()).unwrap();
            fixture.clock.advance(secs(60));
            let claim = take_for(&queue, secs(20));
            let failed = match ending {
                "nack" => {
                    claim.nack_now("no").unwrap();
                    fixture.clock.advance(secs(2));
                    queue.task("a").due
                }
                _ => {
                    fixture.clock.advance(secs(22));
                    wall_of(&queue) - secs(2)
                }
            };
            assert_eq!(queue.enqueue(debounced()).unwrap().due, Some(failed + secs(12)), "{ending}");
            fixture.clock.advance(secs(8));
            assert_eq!(queue.enqueue(debounced()).unwrap().due, Some(failed + secs(15)), "{ending}");
            fixture.clock.advance(secs(5));
            take(&queue).ack().unwrap();
        }
    }

    fn replace_begins_a_new_first(fixture) {
        let queue = fixture.one.queue("q");
        let debounced = || plain("a").delay(secs(10)).on_duplicate(OnDuplicate::Debounce { max_wait: secs(12) });
        queue.enqueue(debounced()).unwrap();
        fixture.clock.advance(secs(8));
        queue.enqueue(plain("a").delay(secs(60)).on_duplicate(OnDuplicate::Replace)).unwrap();
        let before = queue.task("a").due - secs(60);
        assert_eq!(queue.enqueue(debounced()).unwrap().due, Some(before + secs(10)));
    }

    fn an_expiry_counts_from_the_enqueue(fixture) {
        let queue = fixture.one.queue("q");
        queue.enqueue(plain("in time").expires(secs(60))).unwrap();
        queue.enqueue(plain("late").expires(secs(60)).delay(secs(30))).unwrap();
        fixture.clock.advance(secs(30));
        take(&queue).nack(Retry::After(ms(29_999)), "again").unwrap();
        fixture.clock.advance(ms(29_999));
        take(&queue).ack().unwrap();
        let again = take(&queue);
        assert_eq!((again.id(), again.attempt()), ("in time", 2));
        again.nack_now("again").unwrap();
        fixture.clock.advance(ms(1));
        assert_nothing(&queue);
        assert_eq!(queue.task("in time").reason, "expired; before: again");
    }

    fn dead_tasks_are_kept_for_90_days(fixture) {
        let queue = fixture.one.queue("q");
        let die = |id: &str| {
            put(&queue, &[id]);
            take(&queue).bury("dead").unwrap();
        };
        die("a");
        fixture.clock.advance(days(89));
        die("b");
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["b", "a"]);
        fixture.clock.advance(days(1) + ms(1));
        die("c");
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["c", "b"]);
    }

    fn a_queue_with_tasks_is_never_forgotten(fixture) {
        let queue = fixture.one.queue("q");
        let version = queue.enqueue(plain("a").delay(days(300))).unwrap().version;
        for day in 0..30 {
            fixture.clock.advance(days(10));
            // Others come and go meanwhile.
            let other = fixture.two.queue(&format!("other {day}"));
            put(&other, &["x"]);
            take(&other).ack().unwrap();
        }
        let claim = take(&queue);
        assert_eq!((claim.id(), claim.version()), ("a", version));
        claim.ack().unwrap();
    }

    fn a_pause_and_settings_are_never_forgotten(fixture) {
        let (paused, limited) = (fixture.one.queue("paused"), fixture.one.queue("limited"));
        paused.pause().unwrap();
        limited.configure(stanchion::QueueConfig::new().max_len(Some(7))).unwrap();
        fixture.clock.advance(days(400));
        put(&fixture.two.queue("other"), &["x"]);
        assert!(paused.stats().unwrap().paused);
        assert_eq!(limited.stats().unwrap().settings.max_len, Some(7));
    }

    fn a_waiter_gets_the_task_when_the_clock_makes_it_due(fixture) {
        let queue = fixture.one.queue("q");
        queue.enqueue(plain("a").delay(secs(20))).unwrap();
        let waiting = claimer(&fixture.two.queue("q"));
        let clock = stanchion::internals::Clock::Manual(fixture.clock.clone());
        let probe = stanchion_tests::probe::Probe::with_clock(fixture.bench.url(), clock);
        eventually(SOON, || {
            // Only who registered earlier counts as before the probe.
            fixture.clock.advance(ms(1));
            probe.idle("q") == 1
        });
        fixture.clock.advance(queue.stats().unwrap().next_due.unwrap() - ms(1));
        assert!(!waiting.has_ended());
        assert_eq!(census(&queue), [1, 0, 0, 0]);
        fixture.clock.advance(ms(1));
        waiting.join().ack().unwrap();
    }

    fn a_task_that_always_fails_is_tried_for_about_two_days(fixture) {
        let queue = fixture.one.queue("q");
        queue.enqueue(plain("a")).unwrap();
        let (mut longest, mut total) = (ms(0), ms(0));
        for attempt in 1..=19u32 {
            let claim = queue.claim(leased(secs(30))).unwrap().remove(0);
            assert_eq!(claim.attempt(), attempt);
            claim.nack(Retry::Backoff, "no").unwrap();
            let pause = queue.stats().unwrap().next_due.unwrap();
            let most = secs(u64::from(attempt).pow(4)).min(secs(7 * 3_600));
            assert!(pause >= most / 2 && pause <= most, "attempt {attempt}: {pause:?}");
            longest = longest.max(pause);
            total += pause;
            fixture.clock.advance(pause);
        }
        assert!(longest >= secs(7 * 1_800) && longest <= secs(7 * 3_600));
        assert!(total >= secs(32 * 3_600) && total <= secs(66 * 3_600), "{total:?}");
        take(&queue).nack(Retry::Backoff, "last").unwrap();
        assert_eq!(queue.task("a").state, TaskState::Dead);
    }
}
