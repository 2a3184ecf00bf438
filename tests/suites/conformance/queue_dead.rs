//! Dead tasks: exactly after the last attempt, with everything that tells why; and back by kick.

use stanchion::{DeadTasks, ErrorKind, Outcome, QueueConfig, Receipt, TaskState};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;

use crate::ms;
use crate::queue_support::{
    assert_nothing, census, claimed_ids, ids, kind, lapse, plain, put, take, take_for, up_to,
};

/// Buries new tasks with these ids, in this order.
fn bury_all(queue: &AnyQueue, ids: &[&str], reason: &str) {
    put(queue, ids);
    for part in ids.chunks(1_000) {
        for claim in queue.claim(up_to(part.len())).unwrap() {
            claim.bury(reason).unwrap();
        }
    }
}

on_every_store! {
    fn a_task_that_always_fails_is_dead_after_exactly_its_attempts(bench) {
        let queue = bench.client().queue("q");
        for most in [1, 2, 5] {
            let id = format!("m{most}");
            queue.enqueue(plain(&id).max_attempts(most).priority(7).header("h", "v")).unwrap();
            for attempt in 1..=most {
                let claim = take(&queue);
                assert_eq!((claim.attempt(), claim.max_attempts()), (attempt, most));
                claim.nack_now(&format!("failure {attempt}")).unwrap();
            }
            assert_nothing(&queue);
            let dead = queue.task(&id);
            assert_eq!((dead.state, dead.attempts, dead.max_attempts), (TaskState::Dead, most, most));
            assert_eq!(dead.reason, format!("failure {most}"));
            assert_eq!((dead.payload.as_slice(), dead.priority), (id.as_bytes(), 7));
            assert_eq!(dead.headers["h"], "v");
            assert!(dead.died.unwrap() >= dead.due);
        }
        let stats = queue.stats().unwrap();
        assert_eq!((stats.dead, stats.died), (3, 3));
    }

    fn a_task_whose_leases_always_end_is_dead_after_exactly_its_attempts(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(3)).unwrap();
        let mut held = Vec::new();
        for attempt in 1..=3 {
            let claim = take_for(&queue, ms(50));
            assert_eq!(claim.attempt(), attempt);
            lapse(&queue, "a");
            // Dropped, it would say that it has failed.
            held.push(claim);
        }
        assert_nothing(&queue);
        let dead = queue.task("a");
        assert_eq!((dead.state, dead.attempts), (TaskState::Dead, 3));
        assert_eq!((dead.reason.as_str(), dead.payload.as_slice()), ("the lease ended", b"a".as_slice()));
        assert_eq!(census(&queue), [0, 0, 0, 1]);
        assert_eq!(queue.stats().unwrap().died, 1);
    }

    fn every_kind_of_failure_counts_as_an_attempt(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(3)).unwrap();
        take(&queue).nack_now("first").unwrap();
        let _second = take_for(&queue, ms(50));
        lapse(&queue, "a");
        let third = take(&queue);
        assert_eq!(third.attempt(), 3);
        third.nack_now("third").unwrap();
        assert_eq!((queue.task("a").state, queue.task("a").reason.as_str()), (TaskState::Dead, "third"));
    }

    fn the_dead_are_listed_newest_first_and_each_death_is_a_record(bench) {
        let queue = bench.client().queue("q");
        for (round, id) in ["a", "b", "a"].into_iter().enumerate() {
            put(&queue, &[id]);
            take(&queue).bury(&format!("death {round}")).unwrap();
        }
        let dead = queue.all(TaskState::Dead);
        let reasons: Vec<_> = dead.iter().map(|task| (task.id.as_str(), task.reason.as_str())).collect();
        assert_eq!(reasons, [("a", "death 2"), ("b", "death 1"), ("a", "death 0")]);
        assert_eq!(queue.task("a").reason, "death 2", "get gives the newest");
        assert!(dead[0].receipt > dead[1].receipt && dead[1].receipt > dead[2].receipt);
    }

    fn kick_brings_a_dead_task_back_with_all_its_attempts(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1).priority(5).header("h", "v")).unwrap();
        let first = take(&queue);
        first.nack_now("failed").unwrap();
        let dead = queue.task("a");
        assert_eq!(queue.kick(DeadTasks::ids(["a"])).unwrap(), 1);
        let task = queue.task("a");
        assert_eq!((task.state, task.attempts, task.max_attempts, task.priority), (TaskState::Ready, 0, 1, 5));
        assert_eq!((task.payload.as_slice(), task.headers["h"].as_str()), (b"a".as_slice(), "v"));
        assert!(task.version > dead.version, "a new life has a new version");
        assert_eq!(census(&queue), [0, 1, 0, 0]);
        assert_eq!(kind(first.ack()), ErrorKind::StaleReceipt, "the old delivery cannot touch it");
        let claim = take(&queue);
        assert_eq!(claim.attempt(), 1);
        claim.ack().unwrap();
    }

    fn kick_refuses_ids_that_live_or_are_unknown(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        take(&queue).bury("dead").unwrap();
        put(&queue, &["a", "b"]);
        assert_eq!(queue.kick(DeadTasks::ids(["a", "b", "c"])).unwrap(), 0);
        assert_eq!(queue.kick(DeadTasks::ids([""; 0])).unwrap(), 0);
        assert_eq!(queue.kick(DeadTasks::oldest(10)).unwrap(), 0, "the id lives");
        assert_eq!(census(&queue), [0, 2, 0, 1]);
    }

    fn kick_by_count_takes_the_oldest(bench) {
        let queue = bench.client().queue("q");
        for id in ["a", "b", "c", "d"] {
            put(&queue, &[id]);
            take(&queue).bury("dead").unwrap();
        }
        assert_eq!(queue.kick(DeadTasks::oldest(3)).unwrap(), 3);
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["d"]);
        let claims = queue.claim(up_to(10)).unwrap();
        assert_eq!(claimed_ids(&claims), ["a", "b", "c"]);
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn kick_gets_past_a_thousand_dead_whose_ids_live(bench) {
        let queue = bench.client().queue("q");
        let older: Vec<_> = (0..1_001).map(|number| format!("old {number}")).collect();
        let older: Vec<_> = older.iter().map(String::as_str).collect();
        bury_all(&queue, &older, "old");
        put(&queue, &older);
        queue.pause().unwrap();
        assert_eq!(queue.kick(DeadTasks::all()).unwrap(), 0, "all of them live");
        queue.resume().unwrap();
        queue.claim(up_to(1_000)).unwrap().iter().for_each(|claim| claim.ack().unwrap());
        bury_all(&queue, &["young"], "young");
        // 1,000 of the dead live no more; the last of the older ones does.
        assert_eq!(queue.kick(DeadTasks::oldest(1_001)).unwrap(), 1_001);
        assert_eq!(census(&queue), [0, 1_002, 0, 1]);
        assert_eq!(queue.task("young").state, TaskState::Ready);
    }

    fn the_dead_are_meant_by_receipt_reason_prefix_and_age(bench) {
        let queue = bench.client().queue("q");
        for (ids, reason) in [(["a1", "b1"], "timeout: 1"), (["a2", "b2"], "refused"), (["a1", "b3"], "timeout: 2")] {
            bury_all(&queue, &ids, reason);
        }
        let older = queue.all(TaskState::Dead).iter().find(|task| task.id == "a1" && task.reason == "timeout: 1")
            .unwrap().receipt;
        let old = DeadTasks::all().older_than(ms(3_600_000));
        assert_eq!((queue.kick(old.clone()).unwrap(), queue.remove_dead(old).unwrap()), (0, 0));
        // Of an id that died twice the older record alone.
        assert_eq!(queue.remove_dead(DeadTasks::receipts([older, older, Receipt::new(7)])).unwrap(), 1);
        assert_eq!(queue.task("a1").reason, "timeout: 2");
        assert_eq!(queue.remove_dead(DeadTasks::all().reason("timeout").prefix("b")).unwrap(), 2);
        assert_eq!(queue.kick(DeadTasks::ids(["a1", "a2"]).reason("refused")).unwrap(), 1);
        assert_eq!(ids(&queue.all(TaskState::Dead)), ["b2", "a1"].iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(queue.remove_dead(DeadTasks::oldest(1)).unwrap(), 1);
        assert_eq!((queue.get("b2").unwrap(), queue.task("a2").state), (None, TaskState::Ready));
        assert_eq!(queue.remove_dead(DeadTasks::ids(["a1", "a1", "b2"])).unwrap(), 1);
        assert_eq!(census(&queue), [0, 1, 0, 0]);
    }

    fn an_id_named_twice_means_one_record(bench) {
        let queue = bench.client().queue("q");
        for _ in 0..2 {
            bury_all(&queue, &["a"], "old");
        }
        let others = (0..1_000).map(|number| format!("nobody {number}"));
        let named: Vec<_> = ["a".to_owned()].into_iter().chain(others).chain(["a".to_owned()]).collect();
        assert_eq!(queue.remove_dead(DeadTasks::ids(named)).unwrap(), 1);
        assert_eq!(census(&queue), [0, 0, 0, 1]);
    }

    fn what_goes_from_the_middle_leaves_an_ids_other_records_known(bench) {
        let queue = bench.client().queue("q");
        for reason in ["first", "second", "third"] {
            bury_all(&queue, &["a"], reason);
        }
        assert_eq!(queue.remove_dead(DeadTasks::all().reason("second")).unwrap(), 1);
        assert_eq!(queue.task("a").reason, "third");
        assert_eq!(queue.remove_dead(DeadTasks::ids(["a"])).unwrap(), 1);
        assert_eq!(queue.task("a").reason, "first");
        assert_eq!(queue.kick(DeadTasks::ids(["a"])).unwrap(), 1);
        assert_eq!(census(&queue), [0, 1, 0, 0]);
    }

    fn kick_of_an_id_takes_its_newest_record(bench) {
        let queue = bench.client().queue("q");
        for payload in ["old", "new"] {
            queue.enqueue(plain("a").payload(payload)).unwrap();
            take(&queue).bury(payload).unwrap();
        }
        assert_eq!(queue.kick(DeadTasks::ids(["a", "a"])).unwrap(), 1, "the id lives then");
        let claim = take(&queue);
        assert_eq!(claim.payload(), b"new");
        claim.ack().unwrap();
        assert_eq!(queue.task("a").reason, "old");
        assert_eq!(queue.kick(DeadTasks::ids(["a"])).unwrap(), 1);
        assert_eq!(take(&queue).payload(), b"old");
    }

    fn a_kicked_task_can_die_again(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        for round in 0..3 {
            take(&queue).nack_now(&format!("round {round}")).unwrap();
            assert_eq!(census(&queue), [0, 0, 0, 1], "round {round}");
            assert_eq!(queue.task("a").reason, format!("round {round}"));
            assert_eq!(queue.kick(DeadTasks::oldest(1)).unwrap(), 1);
        }
        assert_eq!(queue.stats().unwrap().died, 3);
    }

    fn an_expired_task_is_kicked_back_though_it_expired(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").expires(ms(1))).unwrap();
        let expiry = queue.task("a").expires.unwrap();
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || std::time::SystemTime::now() > expiry);
        assert_nothing(&queue);
        assert_eq!(queue.task("a").reason, "expired");
        assert!(queue.task("a").receipt > Receipt::NONE, "a record has a key though nobody had the task");
        assert_eq!(queue.kick(DeadTasks::oldest(1)).unwrap(), 1);
        assert_eq!(queue.task("a").state, TaskState::Ready);
        // It would die again at once.
        assert_eq!(queue.task("a").expires, None);
        take(&queue).ack().unwrap();
    }

    fn what_expires_pushes_no_failure_out(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().dead_max(2)).unwrap();
        for id in ["failed", "too"] {
            put(&queue, &[id]);
            take(&queue).bury("hopeless").unwrap();
        }
        for id in ["a", "b", "c"] {
            queue.enqueue(plain(id).expires(ms(1))).unwrap();
        }
        let expiry = queue.task("c").expires.unwrap();
        stanchion_tests::wait::eventually(stanchion_tests::wait::SOON, || std::time::SystemTime::now() > expiry);
        assert_nothing(&queue);
        let dead = queue.all(TaskState::Dead);
        // Those that failed first, and of each kind as many as there may be.
        assert_eq!(ids(&dead)[..2], ["too", "failed"]);
        assert_eq!((dead.len(), &*dead[3].reason), (4, "expired"));
        assert_eq!(queue.stats().unwrap().dead, 4);
        // By count they come back in the same order.
        assert_eq!(queue.kick(DeadTasks::oldest(3)).unwrap(), 3);
        assert_eq!(queue.stats().unwrap().dead, 1);
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!(claimed_ids(&claims)[..2], ["failed", "too"]);
        assert_eq!(claims[1].payload(), b"too");
    }

    fn an_id_may_live_beside_its_dead_records(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        take(&queue).bury("dead").unwrap();
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Added);
        take(&queue).ack().unwrap();
        assert_eq!(queue.task("a").state, TaskState::Dead, "the record is still there");
        assert_eq!(queue.remove("a", None).unwrap(), stanchion::Removed::Absent, "remove is for live ones");
        assert_eq!(census(&queue), [0, 0, 0, 1]);
    }
}
