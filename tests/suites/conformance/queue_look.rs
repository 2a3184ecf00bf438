//! peek, get, list, stats, pop: what is seen is what is there.

use stanchion::{ListOptions, Receipt, Retry, TaskState};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::queue_support::{
    assert_nothing, census, claimed_ids, ids, lapse, leased, plain, put, take, take_for, up_to,
};
use crate::{ms, secs, wall};

on_every_store! {
    fn an_unknown_queue_is_empty(bench) {
        let queue = bench.client().queue("never used");
        assert!(queue.peek(10).unwrap().is_empty());
        assert!(queue.pop(10).unwrap().is_empty());
        assert!(queue.get("a").unwrap().is_none());
        assert_eq!(census(&queue), [0; 4]);
        let stats = queue.stats().unwrap();
        assert_eq!((stats.next_due, stats.paused, stats.enqueued, stats.successors), (None, false, 0, 0));
    }

    /// Alive, after a failure, and dead: who had it last.
    fn who_claimed_a_task_is_told_with_it(bench) {
        let open = |label: &str| bench.open(bench.builder().label(label)).queue("q");
        let [web, mail] = ["web", "mail"].map(open);
        put(&web, &["a"]);
        assert_eq!(web.task("a").claimed_by, None);
        let begun = wall();
        let claim = take(&web);
        let told = mail.task("a").claimed_by.unwrap();
        assert_eq!((&*told.label, told.pid), ("web", std::process::id()));
        assert_eq!(told.host, nix::unistd::gethostname().unwrap().to_str().unwrap());
        let since = told.since.unwrap();
        assert!(since + ms(2) > begun && since < wall() + ms(2), "{since:?} is not after {begun:?}");
        assert_eq!(mail.all(TaskState::Claimed)[0].claimed_by.as_ref(), Some(&told));
        claim.nack(Retry::After(ms(0)), "no luck").unwrap();
        let before = mail.task("a").claimed_by.unwrap();
        assert_eq!((&*before.label, before.since), ("web", None), "it waits again");
        take(&mail).bury("hopeless").unwrap();
        let dead = web.task("a");
        assert_eq!((dead.state, &*dead.claimed_by.unwrap().label), (TaskState::Dead, "mail"));
        put(&web, &["a"]);
        assert_eq!(web.task("a").claimed_by, None, "another task");
    }

    fn consumers_are_those_who_wait_and_those_who_have_claims(bench) {
        let open = |label: &str| bench.open(bench.builder().label(label));
        let [web, mail] = ["web", "mail"].map(|label| open(label).queue("q"));
        let told = || -> Vec<_> {
            let consumers = web.consumers().unwrap();
            assert!(consumers.iter().all(|one| one.pid == std::process::id()));
            consumers.into_iter().map(|one| (one.label, one.waiters, one.claims)).collect()
        };
        assert!(told().is_empty());
        put(&web, &["a", "b", "c"]);
        let claims = web.claim(up_to(2)).unwrap();
        let one = take(&mail);
        assert_eq!(told(), [("mail".into(), 0, 1), ("web".into(), 0, 2)]);
        one.ack().unwrap();
        let waiting = task({
            let mail = mail.clone();
            move || mail.claim(up_to(1).wait(SOON)).unwrap().remove(0).ack().unwrap()
        });
        eventually(SOON, || told() == [("mail".into(), 1, 0), ("web".into(), 0, 2)]);
        assert_eq!(mail.stats().unwrap().waiters, 1);
        claims.iter().for_each(|claim| assert!(claim.ack().is_ok()));
        put(&web, &["d"]);
        waiting.join();
        assert!(told().is_empty());
        assert_eq!(mail.stats().unwrap().waiters, 0);
    }

    fn peek_changes_nothing_and_comes_true(bench) {
        let queue = bench.client().queue("q");
        for (id, priority) in [("a", 0), ("b", 3), ("c", 3), ("d", 1)] {
            queue.enqueue(plain(id).priority(priority)).unwrap();
        }
        queue.enqueue(plain("later").delay(secs(60)).priority(9)).unwrap();
        let first = queue.peek(10).unwrap();
        assert_eq!(first, queue.peek(10).unwrap());
        assert_eq!(ids(&first), ["b", "c", "d", "a"]);
        assert_eq!(ids(&queue.peek(2).unwrap()), ["b", "c"]);
        let claims = queue.claim(up_to(10)).unwrap();
        assert_eq!(claimed_ids(&claims), ids(&first));
        assert!(queue.peek(10).unwrap().is_empty());
        for (claim, peeked) in claims.iter().zip(&first) {
            assert_eq!((claim.version(), claim.due()), (peeked.version, peeked.due));
            assert_eq!((peeked.attempts, peeked.receipt, peeked.state), (0, Receipt::NONE, TaskState::Ready));
            claim.ack().unwrap();
        }
    }

    fn peek_sees_what_came_due_meanwhile(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("second").delay(ms(60))).unwrap();
        put(&queue, &["first"]);
        eventually(SOON, || queue.peek(10).unwrap().len() == 2);
        assert_eq!(ids(&queue.peek(10).unwrap()), ["first", "second"]);
        assert_eq!(queue.task("second").state, TaskState::Ready);
        assert_eq!(ids(&queue.all(TaskState::Ready)), ["first", "second"]);
        assert_eq!(census(&queue), [0, 2, 0, 0]);
    }

    fn pop_takes_tasks_for_good(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let before = queue.peek(2).unwrap();
        let popped = queue.pop(2).unwrap();
        assert_eq!(ids(&popped), ["a", "b"]);
        assert_eq!((&popped[0].payload, popped[0].version), (&before[0].payload, before[0].version));
        assert!(queue.get("a").unwrap().is_none());
        assert_eq!(census(&queue), [0, 1, 0, 0]);
        assert_eq!(queue.stats().unwrap().acked, 2, "pops are acks");
        assert_eq!(ids(&queue.pop(10).unwrap()), ["c"]);
        assert!(queue.pop(10).unwrap().is_empty());
    }

    fn pop_keeps_the_order_and_takes_nothing_early_or_claimed(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["held"]);
        let claim = take(&queue);
        queue.enqueue(plain("later").delay(secs(60))).unwrap();
        for (id, priority) in [("low", 0), ("high", 200), ("low2", 0)] {
            queue.enqueue(plain(id).priority(priority)).unwrap();
        }
        assert_eq!(ids(&queue.pop(10).unwrap()), ["high", "low", "low2"]);
        assert_eq!(census(&queue), [1, 0, 1, 0]);
        claim.ack().unwrap();
    }

    fn get_shows_all_of_a_task_in_every_state(bench) {
        let queue = bench.client().queue("q");
        let before = wall();
        let added = queue.enqueue(plain("a").priority(4).max_attempts(3).header("h", "v").expires(secs(600)).delay(secs(60))).unwrap();
        let task = queue.task("a");
        assert_eq!((task.state, task.version, Some(task.due)), (TaskState::Scheduled, added.version, added.due));
        assert_eq!((task.priority, task.attempts, task.max_attempts), (4, 0, 3));
        assert_eq!((task.receipt, task.reason.as_str(), task.died), (Receipt::NONE, "", None));
        assert_eq!((task.lease_left, task.successor_due), (ms(0), None));
        assert!(task.expires.unwrap() >= before + secs(600));
        assert_eq!(task.headers["h"], "v");
        queue.reschedule("a", before).unwrap();
        let claim = take(&queue);
        let task = queue.task("a");
        assert_eq!((task.state, task.attempts, task.receipt), (TaskState::Claimed, 1, claim.receipt()));
        assert!(task.lease_left > secs(25));
        put(&queue, &["a"]);
        assert!(queue.task("a").successor_due.is_some());
        claim.bury("why").unwrap();
        assert_eq!(queue.task("a").state, TaskState::Ready, "the successor lives");
        take(&queue).ack().unwrap();
        let dead = queue.task("a");
        assert_eq!((dead.state, dead.reason.as_str(), dead.receipt), (TaskState::Dead, "why", claim.receipt()));
        assert!(dead.died.unwrap() + ms(5) >= before);
    }

    fn lists_are_paged_without_loss_or_repetition(bench) {
        let queue = bench.client().queue("q");
        let names = |kind: &str| (0..25).map(|number| format!("{kind}{number:02}")).collect::<Vec<_>>();
        // Later ones are due earlier.
        for (number, id) in names("s").iter().enumerate() {
            queue.enqueue(plain(id).delay(secs(1_000 - number as u64))).unwrap();
        }
        for id in names("c") {
            put(&queue, &[&id]);
            std::mem::forget(queue.claim(leased(secs(600))).unwrap());
        }
        for id in names("d") {
            put(&queue, &[&id]);
            take(&queue).bury("dead").unwrap();
        }
        for (number, id) in names("r").iter().enumerate() {
            queue.enqueue(plain(id).priority(if number < 20 { 0 } else { 1 })).unwrap();
        }
        let reversed = |kind: &str| names(kind).into_iter().rev().collect::<Vec<_>>();
        let by_priority = [&names("r")[20..], &names("r")[..20]].concat();
        for (state, expected) in [
            (TaskState::Scheduled, reversed("s")), (TaskState::Claimed, names("c")),
            (TaskState::Dead, reversed("d")), (TaskState::Ready, by_priority),
        ] {
            for size in [1, 7, 25, 1_000] {
                let pages = queue.pages(&ListOptions::new(state).max(size));
                assert!(pages.iter().all(|page| page.len() <= size));
                let seen = pages.concat();
                assert!(seen.iter().all(|task| task.state == state && task.payload == task.id.as_bytes()));
                assert_eq!(ids(&seen), expected, "{state:?} in pages of {size}");
                assert_eq!(pages.len(), 25usize.div_ceil(size), "pages of {size}");
            }
        }
        assert_eq!(census(&queue), [25; 4]);
    }

    fn a_page_goes_on_where_the_last_one_ended_whatever_comes_and_goes(bench) {
        let queue = bench.client().queue("q");
        // All are due at one time: their order is not told by it.
        let due = queue.enqueue(plain("x").delay(secs(60))).unwrap().due.unwrap();
        queue.remove("x", None).unwrap();
        let all = ["a", "b", "c", "d", "e", "f"];
        queue.enqueue_many(all.map(|id| plain(id).due(due))).unwrap();
        let options = ListOptions::new(TaskState::Scheduled).max(2);
        let first = queue.list(options.clone()).unwrap();
        assert_eq!(ids(&first.tasks), ["a", "b"]);
        // The page's last one goes, and one before it; others come before and after.
        for id in ["a", "b"] {
            queue.remove(id, None).unwrap();
        }
        queue.enqueue_many([plain("before").due(due - secs(1)), plain("z").due(due)]).unwrap();
        let mut options = options.page(first.next.unwrap());
        let mut rest = Vec::new();
        loop {
            let page = queue.list(options.clone()).unwrap();
            rest.extend(page.tasks);
            match page.next {
                Some(next) => options = options.page(next),
                None => break,
            }
        }
        assert_eq!(ids(&rest), ["c", "d", "e", "f", "z"]);
    }

    fn a_listing_by_prefix_and_without_payloads(bench) {
        let queue = bench.client().queue("q");
        let names: Vec<_> = (0..1_500).map(|number| format!("n{number}")).collect();
        queue.enqueue_many(names.iter().map(|id| plain(id))).unwrap();
        queue.enqueue_many(["m1", "m2"].map(|id| plain(id).header("h", "v"))).unwrap();
        let options = ListOptions::new(TaskState::Ready).prefix("m").payloads(false).max(10);
        let pages = queue.pages(&options);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2], "a page looks at 1,000");
        for task in &pages[1] {
            assert!(task.payload.is_empty() && task.headers.is_empty() && task.size > 2, "{task:?}");
        }
        let whole = queue.task("m1");
        assert_eq!((whole.payload.as_slice(), whole.size), (b"m1".as_slice(), pages[1][0].size));
        assert_eq!(ids(&queue.pages(&options.clone().prefix("n149")).concat()).len(), 11);
        for id in ["m1", "n7"] {
            queue.remove(id, None).unwrap();
        }
    }

    fn a_page_beyond_the_end_is_empty(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        for state in [TaskState::Ready, TaskState::Scheduled, TaskState::Claimed, TaskState::Dead] {
            let end = match state {
                TaskState::Ready => "7/inf/ff",
                TaskState::Claimed => "7/9007199254740992/ff",
                TaskState::Dead => "12/-inf/",
                _ => "5/9007199254740992/ff",
            };
            let listing = queue.list(ListOptions::new(state).page(end)).unwrap();
            assert!(listing.tasks.is_empty() && listing.next.is_none(), "{state:?} {end}");
        }
    }

    fn a_ready_list_spans_line_due_tasks_and_ended_leases(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["x1", "x2"]);
        let _both = queue.claim(leased(ms(50)).max(2)).unwrap();
        queue.enqueue_many(["d1", "d2", "d3"].map(|id| plain(id).delay(ms(50)))).unwrap();
        put(&queue, &["l1", "l2"]);
        eventually(SOON, || queue.stats().unwrap().ready == 7);
        assert_eq!(census(&queue), [0, 7, 0, 0]);
        let whole = queue.all(TaskState::Ready);
        assert_eq!(ids(&whole), ["l1", "l2", "d1", "d2", "d3", "x1", "x2"]);
        assert_eq!(ids(&queue.peek(7).unwrap()), ids(&whole));
        for size in [1, 2, 3, 5] {
            let seen = queue.pages(&ListOptions::new(TaskState::Ready).max(size)).concat();
            assert_eq!(ids(&seen), ids(&whole), "in pages of {size}");
        }
    }

    fn stats_count_what_happened_and_what_is_there(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c", "d", "a"]);
        queue.enqueue(plain("later").delay(secs(600))).unwrap();
        let claims = queue.claim(up_to(4)).unwrap();
        put(&queue, &["d"]);
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(secs(900)), "no").unwrap();
        claims[2].bury("dead").unwrap();
        let stats = queue.stats().unwrap();
        assert_eq!((stats.scheduled, stats.ready, stats.claimed, stats.dead, stats.successors), (2, 0, 1, 1, 1));
        assert_eq!((stats.enqueued, stats.acked, stats.retried, stats.died), (7, 1, 1, 1));
        let next = stats.next_due.unwrap();
        assert!(next > secs(20) && next <= secs(30), "the lease of d ends first: {next:?}");
        claims[3].ack().unwrap();
        assert_eq!(queue.stats().unwrap().next_due, Some(ms(0)), "its successor is ready");
        assert_eq!(queue.pop(1).unwrap().len(), 1);
        let next = queue.stats().unwrap().next_due.unwrap();
        assert!(next > secs(590) && next <= secs(600), "{next:?}");
        assert_nothing(&queue);
    }

    fn looking_does_not_deliver_end_leases_or_wake(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let claim = take_for(&queue, ms(50));
        lapse(&queue, "a");
        for _ in 0..3 {
            queue.peek(10).unwrap();
            queue.stats().unwrap();
            queue.all(TaskState::Ready);
            queue.task("a");
        }
        assert_eq!(queue.stats().unwrap().retried, 0, "somebody ended the lease by looking");
        claim.ack().unwrap();
    }
}
