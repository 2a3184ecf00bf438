//! queue/enqueue.lua

use stanchion::protocol::{Due, NewTask};

use crate::case::{Bench, given};
use crate::queue_case::{Tweak, enqueue, enqueue_as, ms, plain, request};
use crate::queue_state::turn;
use crate::state::{State, nothing};

/// What all before has counted.
const COUNTS: &str = "counter 50, sequence 20, enqueued 3";

/// One enqueue on a queue with these counts; `counts` are those after it.
#[track_caller]
fn check(before: State, task: NewTask, reply: &str, counts: &str, after: State) {
    check_all(before, vec![task], reply, counts, after);
}

#[track_caller]
fn check_all(before: State, tasks: Vec<NewTask>, reply: &str, counts: &str, after: State) {
    given(before.counts(COUNTS))
        .call(enqueue(tasks))
        .replies(reply)
        .leaves(after.counts(counts).call(&stored(reply)));
}

/// What a reply leaves for its repetition.
fn stored(reply: &str) -> String {
    let code = |word: &str| match word {
        "added" => "15",
        "kept" => "16",
        "replaced" => "17",
        "successor" => "18",
        "throttled" => "19",
        "skipped" => "49",
        "full" => "20",
        word => panic!("{word}"),
    };
    let outcome = |text: &str| {
        let words: Vec<_> = text.split(' ').collect();
        match words[..] {
            [word, version, "due", due] => format!("{} {version} {due}", code(word)),
            [word] => format!("{} 0 0", code(word)),
            _ => panic!("{text}"),
        }
    };
    format!("7: [13 {}]", reply.split("; ").map(outcome).collect::<Vec<_>>().join(" "))
}

const NEW: &str = "version {us}, due {now}, first {now}";
/// The counts after one task that became ready.
const READY: &str = "counter {us}, sequence 21, enqueued 4";
/// The counts after one task that did not.
const ACCEPTED: &str = "counter {us}, sequence 20, enqueued 4";

#[test]
fn a_new_task_is_added() {
    check(nothing(), plain("a"), "added {us} due {now}", READY, nothing().ready("a", 21, NEW));
    let priority = NewTask { priority: 255, ..plain("a") };
    let after = nothing().ready_at("a", &turn(255, 21), &format!("{NEW}, priority 255"));
    check(nothing(), priority, "added {us} due {now}", READY, after);
    let all = NewTask { max_attempts: 3, expires: Some(ms(9_000)), ..plain("a") };
    let after = nothing().ready("a", 21, &format!("{NEW}, max_attempts 3, expires {{now+9000}}"));
    check(nothing(), all, "added {us} due {now}", READY, after);
    // A queue that was never used.
    given(nothing()).call(enqueue([plain("a")])).replies("added {us} due {now}").leaves(
        nothing()
            .ready("a", 1, NEW)
            .counts("counter {us}, sequence 1, enqueued 1")
            .call("7: [13 15 {us} {now}]"),
    );
}

#[test]
fn a_task_is_due_when_it_says() {
    let later = |due: &str| nothing().scheduled("a", due, "version {us}, first {now}");
    let reply = "added {us} due {now+5000}";
    check(nothing(), plain("a").delayed(5_000), reply, ACCEPTED, later("{now+5000}"));
    let reply = "added {us} due 4000000000000";
    check(nothing(), plain("a").due(Due::At(4_000_000_000_000)), reply, ACCEPTED, later("4000000000000"));
    let past = nothing().ready("a", 21, "version {us}, due 77, first {now}");
    check(nothing(), plain("a").due(Due::At(77)), "added {us} due 77", READY, past);
    // Rounded up: never earlier.
    let due = Due::In(std::time::Duration::from_micros(4_999_001));
    check(nothing(), plain("a").due(due), "added {us} due {now+5000}", ACCEPTED, later("{now+5000}"));
    // As far away as numbers go.
    let reply = "added {us} due 4503599627370496";
    let ever = later("4503599627370496");
    check(nothing(), plain("a").due(Due::At(u64::MAX)), reply, ACCEPTED, ever);
}

#[test]
fn debounce_of_a_new_task_waits_no_longer_than_max_wait() {
    let after = |due: &str| nothing().scheduled("a", due, "version {us}, first {now}");
    let task = plain("a").delayed(5_000);
    check(
        nothing(),
        task.clone().debounce(9_000),
        "added {us} due {now+5000}",
        ACCEPTED,
        after("{now+5000}"),
    );
    check(nothing(), task.debounce(700), "added {us} due {now+700}", ACCEPTED, after("{now+700}"));
}

#[test]
fn a_pending_task_is_kept_but_for_its_version() {
    for task in [plain("a"), plain("a").throttle(9_000)] {
        let window = |state: State| match task.on_duplicate {
            stanchion::protocol::OnDuplicate::Throttle { .. } => state.window("a", "{now+9000}", 9_000),
            _ => state,
        };
        let task = || task.clone().with_body("other").delayed(1);
        let after = window(nothing().ready("a", 3, "version {us}, attempts 2, reason x"));
        check(nothing().ready("a", 3, "attempts 2, reason x"), task(), "kept {us} due 1", ACCEPTED, after);
        let before = nothing().scheduled("a", "{then+9000}", "");
        let after = window(nothing().scheduled("a", "{then+9000}", "version {us}"));
        check(before, task(), "kept {us} due {then+9000}", ACCEPTED, after);
    }
}

#[test]
fn a_pending_task_is_replaced() {
    let new = || nothing().ready("a", 21, &format!("{NEW}, settled 40, verdict 2")).body("a", "new");
    let task = || plain("a").with_body("new");
    let old = "attempts 2, reason x, settled 40, verdict 2, expires 5";
    // In line it keeps its place, and the due that it had.
    let kept = "version {us}, first {now}, settled 40, verdict 2";
    let kept = nothing().ready("a", 3, kept).body("a", "new");
    check(nothing().ready("a", 3, old), task().replace(), "replaced {us} due 1", ACCEPTED, kept);
    // Its due has come, and nobody has moved it into the line.
    let unmoved = nothing().scheduled("a", "{then-5}", "version {us}, first {now}").body("a", "new");
    let before = nothing().scheduled("a", "{then-5}", "");
    check(before, task().replace(), "replaced {us} due {then-5}", ACCEPTED, unmoved);
    // Another priority has a line of its own.
    let raised = NewTask { priority: 2, ..task().replace() };
    let after = nothing().ready("a", 21, &format!("{NEW}, priority 2")).body("a", "new");
    check(nothing().ready("a", 3, ""), raised, "replaced {us} due {now}", READY, after);
    let before = nothing().scheduled("a", "{then+9000}", old);
    check(before, task().replace(), "replaced {us} due {now}", READY, new());
    let later = nothing().scheduled("a", "{now+800}", "version {us}, first {now}").body("a", "new");
    let reply = "replaced {us} due {now+800}";
    check(nothing().ready("a", 3, ""), task().delayed(800).replace(), reply, ACCEPTED, later);
}

#[test]
fn debounce_moves_a_pending_task_until_max_wait_after_the_first() {
    let task = || plain("a").delayed(5_000);
    let before = || nothing().ready("a", 3, "first {then-1000}, attempts 2, reason x, settled 40, verdict 2");
    let after = |due: &str, more: &str| {
        let fields = format!("version {{us}}, first {{then-1000}}, settled 40, verdict 2{more}");
        nothing().scheduled("a", due, &fields)
    };
    // The same body: attempts go on.
    let reply = "replaced {us} due {now+5000}";
    check(before(), task().debounce(9_000), reply, ACCEPTED, after("{now+5000}", ", attempts 2"));
    // One is left in any case.
    let fewer = || NewTask { max_attempts: 2, ..task().debounce(9_000) };
    check(before(), fewer(), reply, ACCEPTED, after("{now+5000}", ", max_attempts 2, attempts 1"));
    let other = after("{now+5000}", "").body("a", "new");
    check(before(), task().with_body("new").debounce(9_000), reply, ACCEPTED, other);
    let reply = "replaced {us} due {then+2000}";
    check(before(), task().debounce(3_000), reply, ACCEPTED, after("{then+2000}", ", attempts 2"));
    // It has waited long enough.
    let now = nothing().ready("a", 3, "version {us}, first {then-1000}, settled 40, verdict 2, attempts 2");
    check(before(), task().debounce(500), "replaced {us} due 1", ACCEPTED, now);
}

#[test]
fn no_enqueue_brings_a_retry_forward_of_its_back_off() {
    let held = "backoff {then+9000}";
    let before =
        || nothing().scheduled("a", "{then+9000}", "attempts 2, first {then-50}, backoff {then+9000}");
    let reply = "replaced {us} due {then+9000}";
    let after = nothing().scheduled("a", "{then+9000}", &format!("version {{us}}, first {{now}}, {held}"));
    check(before(), plain("a").replace(), reply, ACCEPTED, after);
    let fields = format!("version {{us}}, first {{then-50}}, attempts 2, {held}");
    let after = nothing().scheduled("a", "{then+9000}", &fields);
    check(before(), plain("a").debounce(100), reply, ACCEPTED, after);
    // Later is later, and the back-off still counts for the next.
    let after = nothing().scheduled("a", "{now+9900}", &format!("version {{us}}, first {{now}}, {held}"));
    check(before(), plain("a").delayed(9_900).replace(), "replaced {us} due {now+9900}", ACCEPTED, after);
    // A successor that takes the retry's place waits, too.
    let before = nothing()
        .scheduled("a", "{then+9000}", &format!("{held}, has_successor 1"))
        .successor("a", "")
        .body("+a", "next");
    let after = nothing()
        .scheduled("a", "{then+9000}", &format!("version {{us}}, first {{now}}, {held}"))
        .body("a", "new");
    check(before, plain("a").with_body("new").replace(), reply, ACCEPTED, after);
}

#[test]
fn a_running_task_gets_a_successor() {
    let running = || nothing().claimed("a", "{then+9000}", "receipt 40, attempts 1");
    let main = || nothing().claimed("a", "{then+9000}", "receipt 40, attempts 1, has_successor 1");
    let task = || plain("a").with_body("new").delayed(700);
    let parked = |fields: &str| {
        main()
            .successor("a", &format!("version {{us}}, due {{now+700}}, first {{now}}{fields}"))
            .body("+a", "new")
    };
    let reply = "successor {us} due {now+700}";
    check(running(), task(), reply, ACCEPTED, parked(""));
    check(running(), task().replace(), reply, ACCEPTED, parked(", replaces 1"));
    check(running(), task().debounce(800), reply, ACCEPTED, parked(", replaces 2"));
    let sooner =
        main().successor("a", "version {us}, due {now+400}, first {now}, replaces 2").body("+a", "new");
    check(running(), task().debounce(400), "successor {us} due {now+400}", ACCEPTED, sooner);
    let throttled = parked("").window("a", "{now+9000}", 9_000);
    check(running(), task().throttle(9_000), reply, ACCEPTED, throttled);
    check(running(), task().skip(), "skipped 1 due 1", COUNTS, running());
}

/// The two ways to wait for a retry: the lease has ended and nobody has noticed, or somebody has. It is one to an
/// enqueue: the task is pending. What its worker says yet counts as long as nothing takes its place.
#[test]
fn a_task_whose_lease_has_ended_is_pending() {
    let waits = "attempts 1, reason the lease ended, first {then-10}";
    let ended = || nothing().claimed("a", "{then-10}", "receipt 40, attempts 1");
    let waiting = |state: fn(&str) -> State| state(&format!("receipt 40, {waits}"));
    let in_line = |fields: &str| nothing().ready("a", 3, fields);
    let later = |fields: &str| nothing().scheduled("a", "{then+9000}", fields);
    let spent = "settled 40, verdict 6";
    let noticed = "counter {us}, sequence 21, enqueued 4, retried 1";
    let kept = format!("version {{us}}, receipt 40, {waits}");
    for task in [plain("a"), plain("a").skip()] {
        check(ended(), task, "kept {us} due 1", noticed, nothing().ready("a", 21, &kept));
    }
    check(waiting(in_line), plain("a"), "kept {us} due 1", ACCEPTED, in_line(&kept));
    check(waiting(later), plain("a"), "kept {us} due {then+9000}", ACCEPTED, later(&kept));
    let task = || plain("a").with_body("new").replace();
    let new = format!("version {{us}}, first {{now}}, {spent}");
    let replaced = |state: State| state.body("a", "new");
    check(ended(), task(), "replaced {us} due 1", noticed, replaced(nothing().ready("a", 21, &new)));
    check(waiting(in_line), task(), "replaced {us} due 1", ACCEPTED, replaced(in_line(&new)));
    let moved = nothing().ready("a", 21, &format!("{new}, due {{now}}"));
    check(waiting(later), task(), "replaced {us} due {now}", READY, replaced(moved));
}

/// Whether somebody has noticed or not.
#[test]
fn a_task_that_died_of_its_lease_is_dead_to_an_enqueue() {
    for task in [plain("a"), plain("a").replace()] {
        let before = nothing().claimed("a", "{then-10}", "receipt 40, attempts 20");
        let dead = "attempts 20, settled 40, verdict 5, reason the lease ended";
        let after = nothing().ready("a", 21, NEW).dead("40", "a", "{now}", dead);
        let counts = "counter {us}, sequence 21, enqueued 4, died 1, dead_size 1";
        check(before, task, "added {us} due {now}", counts, after);
    }
}

#[test]
fn an_enqueue_acts_on_the_successor_if_there_is_one() {
    let main = |ends: &str| nothing().claimed("a", ends, "receipt 40, attempts 1, has_successor 1");
    let before =
        |replaces: u64| main("{then+9000}").successor("a", &format!("due 5, first 3, replaces {replaces}"));
    let task = || plain("a").with_body("new");
    for replaces in [0, 1] {
        let kept = main("{then+9000}")
            .successor("a", &format!("version {{us}}, due 5, first 3, replaces {replaces}"));
        check(before(replaces), task(), "kept {us} due 5", ACCEPTED, kept.clone());
        check(before(replaces), task().skip(), "kept {us} due 5", ACCEPTED, kept.clone());
        let throttled = kept.window("a", "{now+9000}", 9_000);
        check(before(replaces), task().throttle(9_000), "kept {us} due 5", ACCEPTED, throttled);
        let replaced = main("{then+9000}").successor("a", &format!("{NEW}, replaces 1")).body("+a", "new");
        check(before(replaces), task().replace(), "replaced {us} due {now}", ACCEPTED, replaced);
        let moved = main("{then+9000}")
            .successor("a", "version {us}, due 803, first 3, replaces 2")
            .body("+a", "new");
        check(before(replaces), task().debounce(800), "replaced {us} due 803", ACCEPTED, moved);
    }
    // It waited for the run's end for good, and takes the retry's place now.
    let before = main("{then-10}").successor("a", "");
    let after = nothing().ready("a", 21, "version {us}, first {now}, settled 40, verdict 6").body("a", "new");
    let counts = "counter {us}, sequence 21, enqueued 4, retried 1";
    check(before, task().replace(), "replaced {us} due 1", counts, after);
}

#[test]
fn throttle_takes_one_per_window_whatever_became_of_it() {
    let open = || nothing().window("a", "{then+9000}", 9_000);
    let task = || plain("a").throttle(5_000);
    check(open(), task(), "throttled", COUNTS, open().counts(COUNTS).resting());
    let over = nothing().window("a", "{then-1}", 9_000).window("b", "{then-1}", 9_000).window(
        "c",
        "{then+9000}",
        9_000,
    );
    let after =
        nothing().ready("a", 21, NEW).window("a", "{now+5000}", 9_000).window("c", "{then+9000}", 9_000);
    check(over, task(), "added {us} due {now}", READY, after);
    // What was to go still goes.
    given(open().counts(COUNTS).resting())
        .call(enqueue([task()]))
        .replies("throttled")
        .leaves(open().counts(COUNTS).resting().call("7: [13 19 0 0]"));
    // Other policies do not look.
    let after = open().ready("a", 21, NEW);
    check(open(), plain("a"), "added {us} due {now}", READY, after);
}

#[test]
fn a_full_queue_takes_no_new_ids() {
    let full = || nothing().ready("a", 3, "").scheduled("b", "{then+9000}", "").settings("max_len 2");
    check(full(), plain("c"), "full", COUNTS, full());
    check(full(), plain("c").throttle(5_000), "full", COUNTS, full());
    let kept =
        nothing().ready("a", 3, "version {us}").scheduled("b", "{then+9000}", "").settings("max_len 2");
    check(full(), plain("a"), "kept {us} due 1", ACCEPTED, kept);
    // Of two, one finds a place; successors do not count.
    let claimed = || {
        nothing()
            .claimed("a", "{then+9000}", "receipt 40, has_successor 1")
            .successor("a", "")
            .settings("max_len 2")
    };
    let after = claimed().ready("b", 21, NEW);
    check_all(claimed(), vec![plain("b"), plain("c")], "added {us} due {now}; full", READY, after);
}

#[test]
fn an_id_may_come_twice_in_one_call() {
    let twice = |second: NewTask| vec![plain("a"), second];
    let kept = nothing().ready("a", 21, "version {us+1}, due {now}, first {now}");
    let reply = "added {us} due {now}; kept {us+1} due {now}";
    check_all(nothing(), twice(plain("a")), reply, "counter {us+1}, sequence 21, enqueued 5", kept);
    let replaced = nothing().scheduled("a", "{now+900}", "version {us+1}, first {now}").body("a", "new");
    let reply = "added {us} due {now}; replaced {us+1} due {now+900}";
    let counts = "counter {us+1}, sequence 21, enqueued 5";
    check_all(nothing(), twice(plain("a").with_body("new").delayed(900).replace()), reply, counts, replaced);
    let window = nothing().ready("a", 21, NEW).window("a", "{now+5000}", 5_000);
    let both = vec![plain("a").throttle(5_000), plain("a").throttle(5_000)];
    check_all(nothing(), both, "added {us} due {now}; throttled", READY, window);
    let running = nothing().claimed("a", "{then+9000}", "receipt 40");
    let after = nothing()
        .claimed("a", "{then+9000}", "receipt 40, has_successor 1")
        .successor("a", "version {us+1}, due {now}, first {now}");
    let reply = "successor {us} due {now}; kept {us+1} due {now}";
    let counts = "counter {us+1}, sequence 20, enqueued 5";
    check_all(running, twice(plain("a")), reply, counts, after);
}

#[test]
fn a_repetition_repeats_the_reply_and_an_older_call_is_superseded() {
    let state = || nothing().ready("a", 3, "").counts(COUNTS);
    let done = state().call("7: [13 15 99 5]");
    given(done.clone()).call(enqueue([plain("z")])).replies("added 99 due 5").changes_nothing();
    let later = state().call("8: [13 15 99 5]");
    given(later).call(enqueue([plain("z")])).replies("superseded").changes_nothing();
    let earlier = state().call("6: [13 15 99 5]");
    given(earlier)
        .call(enqueue([plain("a")]))
        .replies("kept {us} due 1")
        .leaves(nothing().ready("a", 3, "version {us}").counts(ACCEPTED).call("7: [13 16 {us} 1]"));
}

#[test]
fn whoever_was_registered_first_among_the_live_is_hinted() {
    let idle = |state: State| state.idle(5, "{then-1}").idle(6, "{then+5000}").idle(7, "{then+6000}");
    let rest = |state: State| state.idle(5, "{then-1}").idle(7, "{then+6000}");
    let done = |state: State, counts: &str, reply: &str| state.counts(counts).call(&stored(reply));
    let added = "added {us} due {now}";
    given(idle(nothing().counts(COUNTS)))
        .call(enqueue([plain("a"), plain("b")]))
        .replies(&format!("{added}; added {{us+1}} due {{now}}"))
        .hints(6)
        .leaves(done(
            rest(nothing()).ready("a", 21, NEW).ready("b", 22, "version {us+1}, due {now}, first {now}"),
            "counter {us+1}, sequence 22, enqueued 5",
            &format!("{added}; added {{us+1}} due {{now}}"),
        ));
    // An earlier due than all before is news, a later one is not.
    let first = |state: State| state.scheduled("z", "{then+9000}", "");
    let reply = "added {us} due {now+5000}";
    given(idle(first(nothing().counts(COUNTS))))
        .call(enqueue([plain("a").delayed(5_000)]))
        .replies(reply)
        .hints(6)
        .leaves(done(
            rest(nothing().scheduled("a", "{now+5000}", "version {us}, first {now}").scheduled(
                "z",
                "{then+9000}",
                "",
            )),
            ACCEPTED,
            reply,
        ));
    let reply = "added {us} due {now+15000}";
    given(idle(first(nothing().counts(COUNTS))))
        .call(enqueue([plain("a").delayed(15_000)]))
        .replies(reply)
        .leaves(done(
            idle(first(nothing())).scheduled("a", "{now+15000}", "version {us}, first {now}"),
            ACCEPTED,
            reply,
        ));
    // Nor is one that is as early.
    let at = || plain("a").due(Due::At(4_000_000_000_000));
    let first = |state: State| state.scheduled("z", "4000000000000", "");
    let reply = "added {us} due 4000000000000";
    let both = |state: State| first(state).scheduled("a", "4000000000000", "version {us}, first {now}");
    given(idle(first(nothing().counts(COUNTS)))).call(enqueue([at()])).replies(reply).leaves(done(
        idle(both(nothing())),
        ACCEPTED,
        reply,
    ));
    // Nor is a task that was kept, or any while the queue is paused.
    given(idle(nothing().ready("a", 3, "").counts(COUNTS)))
        .call(enqueue([plain("a")]))
        .replies("kept {us} due 1")
        .leaves(done(idle(nothing().ready("a", 3, "version {us}")), ACCEPTED, "kept {us} due 1"));
    given(idle(nothing().settings("paused yes").counts(COUNTS)))
        .call(enqueue([plain("a")]))
        .replies(added)
        .leaves(done(idle(nothing().ready("a", 21, NEW).settings("paused yes")), READY, added));
}

#[test]
fn a_record_that_was_to_expire_stays_while_tasks_live() {
    given(nothing().counts(COUNTS).resting())
        .call(enqueue([plain("a")]))
        .replies("added {us} due {now}")
        .leaves(nothing().ready("a", 21, NEW).counts(READY).call("7: [13 15 {us} {now}]"));
}

/// The clock has gone back, or many numbers were given out: versions still grow, and stay exact.
#[test]
fn versions_grow_without_the_clock() {
    let far = "counter 9007199254740000, sequence 9";
    given(nothing().counts(far))
        .call(enqueue([plain("a")]))
        .replies("added 9007199254740001 due {now}")
        .leaves(
            nothing()
                .ready("a", 10, "version 9007199254740001, due {now}, first {now}")
                .counts("counter 9007199254740001, sequence 10, enqueued 1")
                .call("7: [13 15 9007199254740001 {now}]"),
        );
}

/// More than Lua's unpack takes at once.
#[test]
fn a_large_batch_is_put_in_whole() {
    let mut bench = Bench::new();
    let ids: Vec<_> = (0..1_000).map(|number| format!("task:{number}")).collect();
    let tasks: Vec<_> = ids.iter().map(|id| plain(id).delayed(60_000)).collect();
    bench.call(request(enqueue(tasks))).unwrap();
    let tasks: Vec<_> = ids.iter().map(|id| plain(id).with_body("new").replace()).collect();
    bench.call(request(enqueue_as(8, tasks))).unwrap();
    let state = bench.state();
    assert!(!state.0.contains_key("q:scheduled"), "all have moved");
    let crate::state::Content::Zset(ready) = &state.0["q:ready"].0 else { panic!("no set") };
    assert!(ready.iter().map(|(id, _)| id).eq(&ids), "in their order");
}
