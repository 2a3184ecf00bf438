//! enqueue: what goes in comes out, to the byte, in order, and not before it is due.

use std::time::{SystemTime, UNIX_EPOCH};

use stanchion::{ErrorKind, MAX_PAYLOAD, Outcome, QueueConfig, Task, TaskState, Version};
use stanchion_tests::on_every_topology;
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{assert_nothing, census, claimed_ids, ids, kind, plain, put, take, up_to};
use crate::{ms, secs, wall};

on_every_topology! {
    fn a_new_task_is_added_and_delivered(bench) {
        let queue = bench.client().queue("q");
        let before = wall();
        let added = queue.enqueue(Task::new("a").payload("work").header("trace", "7")).unwrap();
        assert_eq!((added.id.as_str(), added.outcome), ("a", Outcome::Added));
        assert!(added.version > Version::NONE);
        assert!(added.due.unwrap() + ms(5) >= before && added.due.unwrap() <= SystemTime::now());
        let claim = take(&queue);
        assert_eq!((claim.id(), claim.queue(), claim.payload()), ("a", "q", b"work".as_slice()));
        assert_eq!(claim.headers().get("trace").map(String::as_str), Some("7"));
        assert_eq!((claim.attempt(), claim.max_attempts(), claim.priority()), (1, 20, 0));
        assert_eq!((claim.version(), claim.due()), (added.version, added.due.unwrap()));
        claim.ack().unwrap();
        assert!(queue.get("a").unwrap().is_none());
    }

    fn payloads_come_back_to_the_byte(bench) {
        let queue = bench.client().queue("q");
        let every_byte: Vec<u8> = (0..=255).collect();
        let payloads = [vec![], vec![0], vec![1], every_byte.clone(), b"\r\n*1\r\n$1\r\n".to_vec(), vec![0; 4096],
            every_byte.repeat(4096)];
        for (number, payload) in payloads.iter().enumerate() {
            queue.enqueue(Task::new(format!("t{number}")).payload(payload.clone())).unwrap();
            assert!(queue.task(&format!("t{number}")).payload == *payload, "get: payload {number}");
        }
        for (number, payload) in payloads.iter().enumerate() {
            let claim = take(&queue);
            assert_eq!(claim.id(), format!("t{number}"));
            assert!(claim.payload() == payload, "claim: payload {number} of {} bytes", payload.len());
            assert!(claim.headers().is_empty());
            claim.ack().unwrap();
        }
    }

    fn headers_of_any_text_come_back(bench) {
        let queue = bench.client().queue("q");
        let long = "x".repeat(10_000);
        let pairs = [("", ""), ("a", "\0\n\""), ("größe", "日本"), ("long", &long)];
        let task = pairs.iter().fold(Task::new("a").payload([0, 255]), |task, (name, value)| {
            task.header(*name, *value)
        });
        queue.enqueue(task).unwrap();
        let claim = take(&queue);
        let headers: Vec<_> = claim.headers().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, pairs);
        assert_eq!(claim.payload(), [0, 255]);
        claim.ack().unwrap();
    }

    fn the_largest_payload_goes_through(bench) {
        let queue = bench.client().queue("q");
        let payload: Vec<u8> = (0..MAX_PAYLOAD).map(|index| (index % 251) as u8).collect();
        queue.enqueue(Task::new("large").payload(payload.clone())).unwrap();
        let error = queue.enqueue(Task::new("larger").payload(vec![0; MAX_PAYLOAD + 1])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let claim = take(&queue);
        assert!(claim.payload() == payload, "other bytes came back");
        claim.ack().unwrap();
        assert_eq!(census(&queue), [0, 0, 0, 0]);
    }

    fn a_claim_answers_with_some_of_many_large_payloads(bench) {
        let queue = bench.client().queue("q");
        let large = || vec![7u8; 5 << 20];
        queue.enqueue_many((0..3).map(|number| Task::new(format!("t{number}")).payload(large()))).unwrap();
        for number in 0..3 {
            let claims = queue.claim(up_to(10)).unwrap();
            assert_eq!(claimed_ids(&claims), [format!("t{number}")], "8 MiB hold one of them");
            assert_eq!(claims[0].attempt(), 1);
            claims[0].ack().unwrap();
        }
    }

    fn generated_ids_differ(bench) {
        let queue = bench.client().queue("q");
        let results = queue.enqueue_many((0..50).map(|_| Task::auto())).unwrap();
        let mut ids: Vec<String> = results.into_iter().map(|result| result.unwrap().id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 50);
        assert!(ids.iter().all(|id| id.len() == 32));
        assert_eq!(census(&queue), [0, 50, 0, 0]);
    }

    fn versions_rise_in_the_whole_queue(bench) {
        let (one, two) = (bench.client().queue("q"), bench.client().queue("q"));
        let mut last = Version::NONE;
        for round in 0..20 {
            let queue = if round % 2 == 0 { &one } else { &two };
            let version = queue.enqueue(plain(&format!("t{}", round % 3))).unwrap().version;
            assert!(version > last, "{version} after {last}");
            last = version;
        }
        let claim = take(&one);
        assert!(claim.receipt().get() > last.get(), "receipts and versions come from one counter");
        claim.ack().unwrap();
    }

    fn a_later_life_of_an_id_has_a_later_version(bench) {
        let queue = bench.client().queue("q");
        let first = queue.enqueue(plain("a")).unwrap().version;
        let claim = take(&queue);
        claim.ack().unwrap();
        let second = queue.enqueue(plain("a")).unwrap();
        assert_eq!(second.outcome, Outcome::Added);
        assert!(second.version > first);
        let again = take(&queue);
        assert!(again.receipt() > claim.receipt());
        assert_eq!(again.attempt(), 1);
        again.ack().unwrap();
    }

    fn a_batch_is_carried_out_item_by_item(bench) {
        let queue = bench.client().queue("q");
        let replace = |id: &str, payload: &str| Task::new(id).payload(payload).on_duplicate(stanchion::OnDuplicate::Replace);
        let batch = [Task::new("a").payload("1"), Task::new("b"), Task::new("a").payload("2"), replace("a", "3"), Task::new("c")];
        let results: Vec<_> = queue.enqueue_many(batch).unwrap().into_iter().map(Result::unwrap).collect();
        let outcomes: Vec<_> = results.iter().map(|result| (result.id.as_str(), result.outcome)).collect();
        assert_eq!(outcomes, [
            ("a", Outcome::Added), ("b", Outcome::Added), ("a", Outcome::Kept), ("a", Outcome::Replaced), ("c", Outcome::Added),
        ]);
        assert!(results.windows(2).all(|pair| pair[0].version < pair[1].version), "{results:?}");
        assert_eq!(queue.task("a").payload, b"3");
        assert_eq!(queue.task("a").version, results[3].version);
        assert_eq!(queue.stats().unwrap().enqueued, 5);
        assert_eq!(census(&queue), [0, 3, 0, 0]);
    }

    fn an_empty_batch_does_nothing(bench) {
        let queue = bench.client().queue("q");
        assert!(queue.enqueue_many([]).unwrap().is_empty());
        assert_eq!(census(&queue), [0; 4]);
    }

    fn more_tasks_than_one_request_takes_keep_their_order(bench) {
        let queue = bench.client().queue("q");
        let results = queue.enqueue_many((0..2_500).map(|number| plain(&format!("t{number:04}")))).unwrap();
        assert_eq!(results.len(), 2_500);
        let mut taken = Vec::new();
        for _ in 0..3 {
            let claims = queue.claim(up_to(1_000)).unwrap();
            taken.extend(claims.iter().map(|claim| claim.id().to_owned()));
            let settled = queue.settle(claims.iter().map(stanchion_tests::faces::AnyClaim::acked).collect()).unwrap();
            assert!(settled.into_iter().all(|result| result.is_ok()));
        }
        let expected: Vec<String> = (0..2_500).map(|number| format!("t{number:04}")).collect();
        assert!(taken == expected, "{} taken, or in another order", taken.len());
    }

    fn a_bad_task_in_a_batch_keeps_all_of_it_out(bench) {
        let queue = bench.client().queue("q");
        assert_eq!(kind(queue.enqueue_many([plain("a"), Task::new("")])), ErrorKind::InvalidArgument);
        assert_eq!(census(&queue), [0; 4]);
    }

    fn a_delayed_task_is_not_delivered_before_it_is_due(bench) {
        let queue = bench.client().queue("q");
        let before = wall();
        let added = queue.enqueue(plain("a").delay(secs(2))).unwrap();
        assert!(added.due.unwrap() >= before + secs(2));
        assert_eq!(queue.task("a").state, TaskState::Scheduled);
        assert_nothing(&queue);
        let mut claims = Vec::new();
        eventually(SOON, || {
            claims = queue.claim(up_to(1)).unwrap();
            !claims.is_empty()
        });
        assert!(SystemTime::now() >= before + secs(2), "it came too early");
        claims[0].ack().unwrap();
    }

    fn a_due_time_of_long_ago_is_now(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").due(UNIX_EPOCH + secs(1))).unwrap();
        queue.enqueue(plain("b").due(UNIX_EPOCH - secs(1))).unwrap();
        let claims = queue.claim(up_to(2)).unwrap();
        assert_eq!(claimed_ids(&claims), ["a", "b"]);
        assert_eq!((claims[0].due(), claims[1].due()), (UNIX_EPOCH + secs(1), UNIX_EPOCH));
        claims.iter().for_each(|claim| claim.ack().unwrap());
    }

    fn the_year_9999_is_kept_and_never_comes(bench) {
        let queue = bench.client().queue("q");
        let far = UNIX_EPOCH + ms(253_402_300_799_999);
        assert_eq!(queue.enqueue(plain("a").due(far)).unwrap().due, Some(far));
        assert_nothing(&queue);
        assert_eq!(queue.task("a").due, far);
        assert_eq!(ids(&queue.all(TaskState::Scheduled)), ["a"]);
    }

    fn what_has_expired_does_not_count_as_live(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().max_len(Some(3))).unwrap();
        queue.enqueue(plain("a").expires(ms(1))).unwrap();
        queue.enqueue(plain("later").delay(ms(60_000)).expires(ms(1))).unwrap();
        put(&queue, &["b"]);
        let expiry = queue.task("later").expires.unwrap();
        eventually(SOON, || SystemTime::now() > expiry);
        let results = queue.enqueue_many([plain("c"), plain("d"), plain("e")]).unwrap();
        assert!(results[..2].iter().all(Result::is_ok), "{results:?}");
        assert_eq!(results[2].as_ref().unwrap_err().kind(), ErrorKind::QueueFull);
        assert_eq!((queue.task("a").state, queue.task("a").reason.as_str()), (TaskState::Dead, "expired"));
        assert_eq!(queue.task("later").state, TaskState::Dead);
    }

    fn full_is_judged_per_item_and_for_new_ids_only(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().max_len(Some(2))).unwrap();
        let results = queue.enqueue_many([plain("a"), plain("b"), plain("c"), plain("a")]).unwrap();
        let kinds: Vec<_> = results.iter().map(|result| result.as_ref().map(|task| task.outcome).map_err(stanchion::Error::kind)).collect();
        assert_eq!(kinds, [Ok(Outcome::Added), Ok(Outcome::Added), Err(ErrorKind::QueueFull), Ok(Outcome::Kept)]);
        assert_eq!(results[2].as_ref().unwrap_err().name(), Some("q"));
        assert!(queue.get("c").unwrap().is_none());
        assert_eq!(queue.stats().unwrap().enqueued, 3, "what is full does not count");

        // Claimed tasks live, their successors are no new ids, and returning tasks are never refused.
        let claims = queue.claim(up_to(2)).unwrap();
        assert_eq!(kind(queue.enqueue(plain("c"))), ErrorKind::QueueFull);
        assert_eq!(queue.enqueue(plain("a")).unwrap().outcome, Outcome::Successor);
        claims[1].nack_now("again").unwrap();
        assert_eq!(kind(queue.enqueue(plain("c"))), ErrorKind::QueueFull);
        claims[0].ack().unwrap();
        assert_eq!(kind(queue.enqueue(plain("c"))), ErrorKind::QueueFull);
        take(&queue).ack().unwrap();
        assert_eq!(queue.enqueue(plain("c")).unwrap().outcome, Outcome::Added);
        queue.configure(QueueConfig::new().max_len(None)).unwrap();
        put(&queue, &["d", "e", "f"]);
    }

    fn queues_do_not_share_tasks(bench) {
        let client = bench.client();
        let (one, two) = (client.queue("one"), client.queue("two"));
        put(&one, &["a"]);
        assert_nothing(&two);
        assert!(two.get("a").unwrap().is_none());
        assert_eq!(two.enqueue(plain("a")).unwrap().outcome, Outcome::Added);
        assert_eq!(census(&two), [0, 1, 0, 0]);
        take(&one).ack().unwrap();
        assert_eq!(census(&two), [0, 1, 0, 0]);
    }

    fn names_and_ids_of_any_letters_are_allowed(bench) {
        let client = bench.client();
        let names = ["a b", "größe", "{user}:1", "a{b}c", "x:meta", "stanchion:x", "\u{1F600}", "'; DROP TABLE task; --"];
        for name in names {
            let queue = client.queue(name);
            for id in names.iter().chain(&["}{", "{}", "r1", "i1", "*", "-1"]) {
                assert_eq!(queue.enqueue(plain(id)).unwrap().outcome, Outcome::Added, "{name} {id}");
            }
            queue.enqueue(plain(&"x".repeat(512))).unwrap();
            let claims = queue.claim(up_to(100)).unwrap();
            assert_eq!(claims.len(), 15, "{name}");
            for claim in claims {
                assert_eq!(claim.payload(), claim.id().as_bytes());
                claim.ack().unwrap();
            }
        }
    }
}
