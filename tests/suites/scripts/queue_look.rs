//! What only looks: queue/peek.lua, get.lua, list.lua, stats.lua and consumers.lua; and queue/pop.lua, which tells the same.

use stanchion::protocol::{List, QueueReply, QueueVerb, Reply, TaskState};

use crate::case::given;
use crate::queue_case::{get, list, peek, pop};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

/// A task in every situation.
fn all() -> State {
    nothing()
        .ready("r1", 1, "priority 1")
        .ready("r2", 2, "receipt 30, attempts 1, reason the lease ended, has_successor 1")
        .successor("r2", "version 9, due 77")
        .scheduled("due", "{then-5}", "")
        .scheduled("later", LIVE, "")
        .claimed("ended", "{then-1}", "receipt 41, attempts 1")
        .claimed("runs", LIVE, "receipt 40, attempts 2, settled 39, verdict 2, reason x")
        .dead("10", "old", "{then-30}", "attempts 20, reason y")
        .dead("11", "new", "{then-20}", "")
        .intake("i1", "5")
        .intake("i2", "4000000000")
        .counts(COUNTS)
}

const R1: &str = "r1 ready b version 1 due 1 attempts 0 receipt 0";
const R2: &str = "r2 ready b version 1 due 1 attempts 1 receipt 30 reason the lease ended successor 77";
const DUE: &str = "due ready b version 1 due {then-5} attempts 0 receipt 0";
const ENDED: &str = "ended ready b version 1 due 1 attempts 1 receipt 41";
const I1: &str = "i1 ready  version 0 due 5000 attempts 0 receipt 0";
const LATER: &str = "later scheduled b version 1 due {then+9000} attempts 0 receipt 0";
const I2: &str = "i2 scheduled  version 0 due 4000000000000 attempts 0 receipt 0";
const RUNS: &str = "runs claimed b version 1 due 1 attempts 2 receipt 40 left {~9000} reason x";
const OLD: &str = "old dead b version 1 due 1 attempts 20 receipt 10 reason y died {then-30}";
const NEW: &str = "new dead b version 1 due 1 attempts 0 receipt 11 died {then-20}";

#[test]
fn peek_tells_what_would_be_claimed_next() {
    let next = [R1, R2, DUE, ENDED, I1];
    for max in 1..=9 {
        let told = next[..next.len().min(max)].join("; ");
        given(all()).call(peek(u32::try_from(max).unwrap())).replies(&told).changes_nothing();
    }
    given(nothing()).call(peek(9)).replies("").changes_nothing();
}

#[test]
fn list_tells_of_each_state_page_by_page() {
    let states = [
        (TaskState::Ready, vec![R1, R2, DUE, ENDED, I1]),
        (TaskState::Scheduled, vec![LATER, I2]),
        (TaskState::Claimed, vec![RUNS]),
        (TaskState::Dead, vec![NEW, OLD]),
    ];
    for (state, tasks) in states {
        for max in 1..4 {
            let mut bench = crate::case::Bench::new();
            bench.set_up(&all());
            let (mut from, mut pages) = (None, Vec::new());
            loop {
                let verb = QueueVerb::List(List {
                    state,
                    prefix: "".into(),
                    bodies: true,
                    from,
                    max: u32::try_from(max).unwrap(),
                });
                let Reply::Queue(QueueReply::List(page)) =
                    bench.call(crate::queue_case::request(verb)).unwrap()
                else {
                    panic!("no page")
                };
                assert_eq!(page.tasks.len(), max.min(tasks.len() - pages.len()));
                pages.extend(page.tasks.iter().map(|task| task.id.as_str().to_owned()));
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            let expected: Vec<_> = tasks.iter().map(|told| told.split(' ').next().unwrap()).collect();
            assert_eq!(pages, expected, "{state:?} in pages of {max}");
        }
        given(all()).call(list(state, None, 9)).replies(&tasks.join("; ")).changes_nothing();
    }
}

#[test]
fn get_finds_a_task_wherever_it_is() {
    let tasks = [
        ("r1", R1),
        ("r2", R2),
        ("due", DUE),
        ("ended", ENDED),
        ("i1", I1),
        ("later", LATER),
        ("i2", I2),
        ("runs", RUNS),
        ("old", OLD),
        ("new", NEW),
        ("nowhere", "unknown"),
    ];
    for (id, told) in tasks {
        given(all()).call(get(id)).replies(told).changes_nothing();
    }
    let twice = || {
        nothing().older_dead("10", "a", "{then-9}", "").dead("12", "a", "{then-5}", "").chained("10", "12")
    };
    let told = "a dead b version 1 due 1 attempts 0 receipt 12 died {then-5}";
    given(twice().counts(COUNTS)).call(get("a")).replies(told).changes_nothing();
    let told = "a ready b version 1 due 1 attempts 0 receipt 0";
    given(twice().ready("a", 1, "").counts(COUNTS)).call(get("a")).replies(told).changes_nothing();
    // The last delivery is settled: its receipt is worth nothing.
    let told = "a ready b version 1 due 1 attempts 1 receipt 0";
    given(nothing().ready("a", 1, "attempts 1, settled 40, verdict 2").counts(COUNTS))
        .call(get("a"))
        .replies(told)
        .changes_nothing();
}

#[test]
fn an_intake_that_is_off_is_not_told_of() {
    let off = || nothing().intake("a", "5").settings("intake 0").counts(COUNTS);
    given(off()).call(get("a")).replies("unknown").changes_nothing();
    given(off()).call(peek(9)).replies("").changes_nothing();
}

#[test]
fn stats_count_by_what_is_due_not_by_what_was_promoted() {
    let counts = "counter 50, sequence 20, enqueued 9, acked 8, retried 7, died 6, dead_size 5";
    let settings = "QueueSettings { max_len: None, dead_max: 10000, dead_age: 7776000s, dead_bytes: 268435456, intake: true, events: 0, max_running: None, rate: None, key_concurrency: None, key_rate: None }";
    given(all().counts(counts))
        .call(QueueVerb::Stats)
        .replies(&format!(
            "QueueStats [ scheduled: 2, ready: 5, claimed: 1, held: 0, keys_waiting: 0, next_key: None, gate: Open, dead: 2, successors: 1, paused: false, waiters: 0, \
             next_due: Some(0ns), \
             enqueued: 9, acked: 8, retried: 7, died: 6, settings: {}, schedules: 0, schedules_late: 0ns, flows: 0 ]",
            settings.replace("{ ", "[ ").replace(" }", " ]")
        ))
        .changes_nothing();
    let later = nothing()
        .scheduled("a", LIVE, "")
        .settings("paused yes, max_len 3, dead_max 4, dead_age 5000, dead_bytes 6, intake 0");
    let settings = "QueueSettings [ max_len: Some(3), dead_max: 4, dead_age: 5s, dead_bytes: 6, intake: false, events: 0, max_running: None, rate: None, key_concurrency: None, key_rate: None ]";
    let mut bench = crate::case::Bench::new();
    bench.set_up(&later.counts(COUNTS));
    let reply = crate::case::describe(&bench.call(crate::queue_case::request(QueueVerb::Stats)).unwrap());
    assert!(
        reply.contains(
            "scheduled: 1, ready: 0, claimed: 0, held: 0, keys_waiting: 0, next_key: None, gate: Paused, dead: 0, successors: 0, paused: true, waiters: 0, next_due: Some("
        ),
        "{reply}"
    );
    assert!(reply.contains(settings), "{reply}");
}

#[test]
fn stats_of_a_queue_that_never_was_are_zero() {
    let zero = "QueueStats [ scheduled: 0, ready: 0, claimed: 0, held: 0, keys_waiting: 0, next_key: None, gate: Open, dead: 0, successors: 0, paused: false, waiters: 0, next_due: None, \
                enqueued: 0, acked: 0, retried: 0, died: 0, settings: QueueSettings [ max_len: None, dead_max: 10000, \
                dead_age: 7776000s, dead_bytes: 268435456, intake: true, events: 0, max_running: None, rate: None, key_concurrency: None, key_rate: None ], schedules: 0, schedules_late: 0ns, flows: 0 ]";
    given(nothing()).call(QueueVerb::Stats).replies(zero).changes_nothing();
}

#[test]
fn consumers_are_those_who_wait_and_those_who_have_tasks() {
    let state = nothing()
        .claimed("a", LIVE, "receipt 40, attempts 1, consumer 7 host web")
        .claimed("b", LIVE, "receipt 41, attempts 1, consumer 8 host ")
        .claimed("c", LIVE, "receipt 42, attempts 1, consumer 7 host web")
        .claimed("ended", "{then-1}", "receipt 43, attempts 1, consumer 9 host ")
        .ready("retry", 1, "attempts 1, consumer 9 host ")
        .idle_of("7 host web", 5, "{then+5000}")
        .idle_of("6 host mail", 6, "{then+6000}")
        .idle_of("6 host mail", 7, "{then+6000}")
        .idle_of("5 host gone", 8, "{then-1}")
        .counts(COUNTS);
    given(state.clone())
        .call(QueueVerb::Consumers)
        .replies("\"6 host mail\" waits 2 has 0; \"7 host web\" waits 1 has 2; \"8 host \" waits 0 has 1")
        .changes_nothing();
    given(nothing()).call(QueueVerb::Consumers).replies("").changes_nothing();
    let mut bench = crate::case::Bench::new();
    bench.set_up(&state);
    let stats = crate::case::describe(&bench.call(crate::queue_case::request(QueueVerb::Stats)).unwrap());
    assert!(stats.contains("waiters: 3,"), "{stats}");
}

#[test]
fn popped_tasks_are_gone() {
    let before = || nothing().ready("a", 1, "").scheduled("b", "{then-5}", "").ready("c", 0, "expires 5");
    given(before().counts(COUNTS)).call(pop(9)).replies(
        "a claimed b version 1 due 1 attempts 1 receipt {us+1}; b claimed b version 1 due {then-5} attempts 1 receipt {us+2}",
    )
    .leaves(
        nothing()
            .expired("{us}", "c", "{now}", "expires 5, reason expired")
            .counts("counter {us+2}, sequence 21, acked 2, died 1, expired_size 1")
            .resting(),
    );
    given(nothing().counts(COUNTS)).call(pop(9)).replies("").leaves(nothing().counts(COUNTS).resting());
    let paused = || before().settings("paused yes").counts(COUNTS);
    given(paused()).call(pop(9)).replies("paused").changes_nothing();
}

#[test]
fn a_pop_that_leaves_something_hints_a_consumer_and_makes_way_for_a_successor() {
    let before = nothing()
        .ready("a", 1, "receipt 40, attempts 1, has_successor 1")
        .successor("a", "version 9")
        .body("+a", "next");
    given(before.idle(5, "{then+5000}").counts(COUNTS))
        .call(pop(1))
        .replies("a claimed b version 1 due 1 attempts 2 receipt {us}")
        .hints(5)
        .leaves(
            nothing()
                .ready("a", 21, "version 9, settled {us}, verdict 1")
                .body("a", "next")
                .counts("counter {us}, sequence 21, acked 1"),
        );
}
