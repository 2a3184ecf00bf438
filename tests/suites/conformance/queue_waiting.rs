//! claim with a wait: woken by whatever makes a task claimable, and never before it is due.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stanchion::{ClaimOptions, DeadTasks, OnDuplicate, Retry, TaskState};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually, ran_since, task};

use crate::queue_support::{
    assert_nothing, await_one, claimed_ids, claimer, lapse, leased, plain, put, take, take_for, up_to,
};
use crate::{ms, secs, timed};

/// Less than any poll of a lone waiter (875 ms at least): only a hint, or the clock, comes so soon.
const AT_ONCE: std::time::Duration = ms(500);

/// When that is, or now if it is over.
fn instant(time: SystemTime) -> Instant {
    Instant::now() + time.duration_since(SystemTime::now()).unwrap_or_default()
}

on_every_store! {
    fn a_wait_for_nothing_ends_in_time(bench) {
        let queue = bench.client().queue("q");
        let (claims, took) = timed(|| queue.claim(up_to(1).wait(ms(200))).unwrap());
        assert!(claims.is_empty());
        assert!(took.at_least(ms(199)) && took.less_than(ms(1_500)), "took {took:?}");
        assert_eq!(bench.probe().idle("q"), 0, "nobody is left in the idle set");
    }

    fn what_is_there_already_is_not_waited_for(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let (claims, took) = timed(|| queue.claim(up_to(10).wait(secs(20))).unwrap());
        assert_eq!(claimed_ids(&claims), ["a", "b"], "two are enough for ten");
        assert!(took.less_than(AT_ONCE), "took {took:?}");
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn an_enqueue_wakes_a_waiter(bench) {
        let (producer, consumer) = (bench.client().queue("q"), bench.client().queue("q"));
        let probe = bench.probe();
        for round in 0..3 {
            let waiting = claimer(&consumer);
            probe.wait_for_idle("q", 1);
            let id = format!("t{round}");
            let (claim, took) = timed(|| {
                put(&producer, &[&id]);
                waiting.join()
            });
            assert_eq!(claim.id(), id);
            assert!(took.less_than(AT_ONCE), "took {took:?}");
            claim.ack().unwrap();
        }
        assert_eq!(probe.idle("q"), 0);
    }

    fn each_of_many_tasks_wakes_another_waiter(bench) {
        let producer = bench.client().queue("q");
        let waiting: Vec<_> = (0..3).map(|_| claimer(&bench.client().queue("q"))).collect();
        bench.probe().wait_for_idle("q", 3);
        let begun = Instant::now();
        put(&producer, &["a", "b", "c"]);
        let claims: Vec<_> = waiting.into_iter().map(|claimer| claimer.join()).collect();
        let took = ran_since(begun);
        assert!(took < AT_ONCE, "took {took:?}");
        let mut ids = claimed_ids(&claims);
        ids.sort_unstable();
        assert_eq!(ids, ["a", "b", "c"]);
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn waiters_of_one_client_are_woken_too(bench) {
        let client = bench.client();
        let queue = client.queue("q");
        let waiting: Vec<_> = (0..2).map(|_| claimer(&queue)).collect();
        bench.probe().wait_for_idle("q", 2);
        let begun = Instant::now();
        put(&queue, &["a", "b"]);
        waiting.into_iter().for_each(|claimer| claimer.join().ack().unwrap());
        assert!(ran_since(begun) < AT_ONCE, "took {:?}", ran_since(begun));
    }

    fn a_delayed_task_comes_when_it_is_due_and_not_before(bench) {
        let queue = bench.client().queue("q");
        let due = queue.enqueue(plain("a").delay(ms(300))).unwrap().due.unwrap();
        let due_at = instant(due);
        let claim = await_one(&queue);
        let now = SystemTime::now();
        assert!(now >= due, "{:?} too early", due.duration_since(now));
        assert!(ran_since(due_at) < AT_ONCE, "{:?} late", ran_since(due_at));
        assert_eq!(claim.due(), due);
        claim.ack().unwrap();
    }

    fn an_earlier_due_wakes_one_who_sleeps_until_a_later_one(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("late").delay(secs(600))).unwrap();
        let waiting = claimer(&queue);
        let probe = bench.probe();
        probe.wait_for_idle("q", 1);
        let due = queue.enqueue(plain("early").delay(ms(100))).unwrap().due.unwrap();
        let due_at = instant(due);
        let claim = waiting.join();
        assert_eq!(claim.id(), "early");
        assert!(SystemTime::now() >= due && ran_since(due_at) < AT_ONCE);
        claim.ack().unwrap();
    }

    fn the_end_of_a_lease_brings_the_task_to_a_waiter(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let old = take_for(&queue, ms(300));
        let (claim, took) = timed(|| await_one(&bench.client().queue("q")));
        assert_eq!((claim.id(), claim.attempt()), ("a", 2));
        assert!(claim.receipt() > old.receipt());
        assert!(took.less_than(ms(300) + AT_ONCE), "took {took:?}");
        assert!(!old.is_valid(), "two have it");
        claim.ack().unwrap();
    }

    fn every_verb_that_makes_a_task_ready_wakes_a_waiter(bench) {
        let (client, consumer) = (bench.client(), bench.client());
        let probe = bench.probe();
        type Make = fn(&stanchion_tests::faces::AnyQueue);
        // What is prepared, and what makes it ready.
        let cases: [(&str, Make, Make); 6] = [
            ("reschedule", |queue| drop(queue.enqueue(plain("a").delay(secs(600))).unwrap()),
             |queue| assert!(matches!(queue.reschedule("a", UNIX_EPOCH), Ok(stanchion::Rescheduled::Moved(_))))),
            ("kick", |queue| { put(queue, &["a"]); take(queue).bury("dead").unwrap(); },
             |queue| assert_eq!(queue.kick(DeadTasks::oldest(1)).unwrap(), 1)),
            ("resume", |queue| { put(queue, &["a"]); queue.pause().unwrap(); },
             |queue| queue.resume().unwrap()),
            ("replace", |queue| drop(queue.enqueue(plain("a").delay(secs(600))).unwrap()),
             |queue| drop(queue.enqueue(plain("a").on_duplicate(OnDuplicate::Replace)).unwrap())),
            ("enqueue_many", |_| {}, |queue| put(queue, &["a"])),
            ("debounce", |queue| drop(queue.enqueue(plain("a").delay(secs(600))).unwrap()),
             |queue| drop(queue.enqueue(plain("a").on_duplicate(OnDuplicate::Debounce { max_wait: secs(60) })).unwrap())),
        ];
        for (verb, prepare, make_ready) in cases {
            let (queue, consumer) = (client.queue(verb), consumer.queue(verb));
            prepare(&queue);
            let waiting = claimer(&consumer);
            probe.wait_for_idle(verb, 1);
            let begun = Instant::now();
            make_ready(&queue);
            let claim = waiting.join();
            assert!(ran_since(begun) < AT_ONCE, "{verb}: took {:?}", ran_since(begun));
            assert_eq!(claim.id(), "a", "{verb}");
            claim.ack().unwrap();
        }
    }

    fn every_verdict_that_makes_a_task_ready_wakes_a_waiter(bench) {
        let (client, consumer) = (bench.client(), bench.client());
        let probe = bench.probe();
        for verdict in ["nack", "put_back", "ack of one with a successor", "bury of one with a successor"] {
            let name = verdict.replace(' ', "-");
            let (queue, consumer) = (client.queue(&name), consumer.queue(&name));
            put(&queue, &["a"]);
            let claim = take(&queue);
            if verdict.ends_with("successor") {
                put(&queue, &["a"]);
            }
            let waiting = claimer(&consumer);
            probe.wait_for_idle(&name, 1);
            let begun = Instant::now();
            match verdict {
                "nack" => claim.nack(Retry::After(ms(0)), "again").unwrap(),
                "put_back" => claim.put_back().unwrap(),
                "ack of one with a successor" => claim.ack().unwrap(),
                _ => claim.bury("dead").unwrap(),
            }
            let next = waiting.join();
            assert!(ran_since(begun) < AT_ONCE, "{verdict}: took {:?}", ran_since(begun));
            assert_eq!(next.id(), "a");
            next.ack().unwrap();
        }
    }

    fn a_claim_that_leaves_tasks_wakes_the_next_waiter(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let held = queue.claim(up_to(3)).unwrap();
        let waiting: Vec<_> = (0..2).map(|_| claimer(&bench.client().queue("q"))).collect();
        bench.probe().wait_for_idle("q", 2);
        // One settle call makes one new chance, so only one waiter is hinted; it takes one and wakes the other.
        let begun = Instant::now();
        let verdicts = held.iter().map(stanchion_tests::faces::AnyClaim::returned).collect();
        assert!(queue.settle(verdicts).unwrap().into_iter().all(|result| result.is_ok()));
        let claims: Vec<_> = waiting.into_iter().map(|claimer| claimer.join()).collect();
        assert!(ran_since(begun) < AT_ONCE, "took {:?}", ran_since(begun));
        claims.iter().for_each(|claim| claim.ack().unwrap());
        take(&queue).ack().unwrap();
    }

    fn a_wait_over_several_queues_hears_of_each(bench) {
        let (producer, consumer) = (bench.client(), bench.client());
        let probe = bench.probe();
        for name in ["one", "two"] {
            let queues = consumer.queues(&["one", "two"]);
            let waiting = task(move || queues.claim(up_to(1).wait(secs(30))).unwrap());
            probe.wait_for_idle("one", 1);
            probe.wait_for_idle("two", 1);
            let begun = Instant::now();
            put(&producer.queue(name), &["a"]);
            let claims = waiting.join();
            assert!(ran_since(begun) < AT_ONCE, "{name}: took {:?}", ran_since(begun));
            assert_eq!((claims.len(), claims[0].queue()), (1, name));
            claims[0].ack().unwrap();
            eventually(SOON, || probe.idle("one") == 0 && probe.idle("two") == 0);
        }
    }

    fn nobody_is_woken_for_a_paused_queue_but_waits_on(bench) {
        let queue = bench.client().queue("q");
        queue.pause().unwrap();
        let waiting = claimer(&bench.client().queue("q"));
        let probe = bench.probe();
        probe.wait_for_idle("q", 1);
        put(&queue, &["a"]);
        assert_eq!(probe.idle("q"), 1, "it was taken out of the idle set");
        assert!(!waiting.has_ended());
        assert_eq!(queue.task("a").state, TaskState::Ready);
    }

    fn a_wait_is_bounded_though_the_queue_is_paused(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        queue.pause().unwrap();
        let (claims, took) = timed(|| queue.claim(up_to(1).wait(ms(150))).unwrap());
        assert!(claims.is_empty() && took.at_least(ms(149)), "took {took:?}");
    }

    fn settle_and_claim_waits_as_a_claim_does(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take(&queue);
        let (waiting_queue, options) = (queue.clone(), up_to(1).wait(secs(30)));
        let waiting = task(move || waiting_queue.settle_and_claim(vec![claim.acked()], options).unwrap());
        eventually(SOON, || queue.get("a").unwrap().is_none());
        bench.probe().wait_for_idle("q", 1);
        put(&queue, &["b"]);
        let (settled, claims) = waiting.join();
        assert!(settled[0].is_ok());
        assert_eq!(claimed_ids(&claims), ["b"]);
        claims[0].ack().unwrap();
    }

    fn a_renewed_claim_stays_with_its_owner(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let options = ClaimOptions::new().lease(ms(2_400)).renew(true);
        let claims = queue.claim(options).unwrap();
        let mut renewals = 0;
        let mut last = claims[0].remaining();
        eventually(SOON, || {
            let now = claims[0].remaining();
            renewals += u32::from(now > last);
            last = now;
            renewals == 4
        });
        assert!(claims[0].is_valid());
        assert_nothing(&queue);
        claims[0].ack().unwrap();
    }

    fn max_run_ends_a_renewed_claim(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let options = ClaimOptions::new().lease(secs(2)).renew(true).max_run(ms(2_500));
        let (claims, begun) = (queue.claim(options).unwrap(), Instant::now());
        assert!(claims[0].wait_lost(SOON));
        assert!(begun.elapsed() > ms(2_400), "after {:?}", begun.elapsed());
        assert!(ran_since(begun) < ms(3_300), "after {:?}", ran_since(begun));
        assert_eq!(claims[0].loss(), Some(stanchion::LossReason::MaxHold));
        lapse(&queue, "a");
        let again = queue.claim(leased(secs(30))).unwrap();
        assert_eq!((again.len(), again[0].attempt()), (1, 2), "the attempt counts");
        again[0].ack().unwrap();
    }
}
