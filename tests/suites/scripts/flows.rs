//! queue/put_flow.lua, queue/get_flow.lua, queue/list_flows.lua and queue/read_nodes.lua; what purge.lua does to flows.

use stanchion::internals::task_key;
use stanchion::protocol::{Due, NewNode, QueueVerb};

use crate::case::{Bench, describe, given};
use crate::flow_case::{
    add_nodes, calm, get_flow, list_flows, node, put_flow, put_part, read_nodes, step, step_of, two,
};
use crate::queue_case::{ms, request};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";
/// What the outbox says of one flow that lives.
const ONE_LIVES: &str = "walk_at {then+9000}, live_flows 1";

/// What has just begun, or has got more nodes.
fn begins(state: State, more: &str) -> State {
    state
        .message("{us+1}", 1, "0 f")
        .outbox(&format!("first_message {{us+1}}, last_message {{us+1}}, {more}"))
}

#[test]
fn a_flow_in_one_part_begins_at_once() {
    given(nothing().idle(5, LIVE)).call(put_flow(7, [node("a"), node("b")])).replies("put").hints(5).leaves(
        begins(
            two(nothing()).flow("f", "{now}", "flow_version {us}, node_count 2"),
            "walk_at {now+60000}, live_flows 1",
        )
        .counts("counter {us}"),
    );
    // Again, by the same call and by another.
    given(calm()).call(put_flow(7, [node("a")])).replies("put").changes_nothing();
    given(calm()).call(put_flow(8, [node("a")])).replies("exists").changes_nothing();
    let ended = || two(nothing()).ended_flow("f", "{then-5}", "node_count 2").no_live_flow().counts(COUNTS);
    given(ended().resting()).call(put_flow(8, [node("a")])).replies("exists").changes_nothing();
}

#[test]
fn a_flow_in_parts_is_a_draft_until_the_last_one() {
    let draft = |fields: &str| nothing().draft("f", "{now}", fields).node(0, "a", "");
    given(nothing().counts(COUNTS).resting()).call(put_part(7, 0, false, [node("a")])).replies("put").leaves(
        draft("flow_version {us}, node_count 1").no_live_flow().counts("counter {us}, sequence 20").resting(),
    );
    let before = || {
        nothing()
            .draft("f", "{then-5}", "node_count 1")
            .node(0, "a", "")
            .no_live_flow()
            .counts(COUNTS)
            .resting()
    };
    given(before()).call(put_part(7, 1, true, [node("b")])).replies("put").leaves(
        begins(
            two(nothing()).flow("f", "{then-5}", "flow_version {us}, node_count 2"),
            "walk_at {now+60000}, live_flows 1",
        )
        .counts("counter {us}, sequence 20"),
    );
    // Its first parts are gone.
    given(nothing().counts(COUNTS).resting())
        .call(put_part(7, 1, true, [node("b")]))
        .replies("absent")
        .changes_nothing();
    // Nobody sees it before.
    given(before()).call(get_flow("f")).replies("unknown").changes_nothing();
    given(before()).call(list_flows(None, 9)).replies("").changes_nothing();
    given(before()).call(add_nodes(8, 1, 30)).replies("absent").changes_nothing();
    given(before()).call(step(0, 0, [step_of(30)])).replies("stale").changes_nothing();
}

#[test]
fn a_draft_that_somebody_gave_up_makes_place_after_a_while() {
    let draft = |created: &str| {
        nothing()
            .draft("f", created, "node_count 3")
            .node(0, "x", "")
            .node(1, "y", "")
            .node(2, "z", "")
            .no_live_flow()
            .counts(COUNTS)
            .resting()
    };
    given(draft("{then-50000}")).call(put_part(8, 0, false, [node("a")])).replies("stale").changes_nothing();
    given(draft("{then-60001}")).call(put_part(8, 0, false, [node("a")])).replies("put").leaves(
        nothing()
            .draft("f", "{now}", "flow_version {us}, flow_token 8, node_count 1")
            .node(0, "a", "")
            .no_live_flow()
            .counts("counter {us}, sequence 20")
            .resting(),
    );
}

#[test]
fn a_full_queue_takes_no_new_flow() {
    let full = || nothing().ready("t", 1, "").settings("max_len 1").counts(COUNTS);
    given(full()).call(put_flow(7, [node("a")])).replies("full").changes_nothing();
    // One that is there goes on.
    let draft = full().draft("f", "{then-5}", "node_count 1").node(0, "a", "").no_live_flow();
    given(draft).call(put_part(7, 1, true, [node("b")])).replies("put").leaves(
        begins(
            two(nothing()).flow("f", "{then-5}", "flow_version {us}, node_count 2"),
            "walk_at {now+60000}, live_flows 1",
        )
        .ready("t", 1, "")
        .settings("max_len 1")
        .counts("counter {us}, sequence 20"),
    );
}

#[test]
fn nodes_are_added_to_the_version_that_was_read() {
    given(calm()).call(add_nodes(8, 2, 30)).replies("put").leaves(
        begins(
            two(nothing()).node(2, "more", "").flow(
                "f",
                "{then-5}",
                "flow_version {us}, flow_token 8, node_count 3",
            ),
            ONE_LIVES,
        )
        .counts("counter {us}, sequence 20"),
    );
    given(calm()).call(add_nodes(7, 2, 29)).replies("put").changes_nothing();
    given(calm()).call(add_nodes(8, 2, 29)).replies("stale").changes_nothing();
    given(nothing()).call(add_nodes(8, 2, 30)).replies("absent").changes_nothing();
    let ended =
        two(nothing()).ended_flow("f", "{then-5}", "node_count 2").no_live_flow().counts(COUNTS).resting();
    given(ended).call(add_nodes(8, 2, 30)).replies("absent").changes_nothing();
}

#[test]
fn a_flow_of_many_nodes_is_stored_and_dropped_whole() {
    let mut bench = Bench::new();
    bench.set_up(&nothing());
    let nodes: Vec<_> = (0..2_500).map(|number| node(&format!("n{number}"))).collect();
    for (part, nodes) in nodes.chunks(1_000).enumerate() {
        let part = u32::try_from(part).unwrap();
        let put = put_part(7, part * 1_000, part == 2, nodes.to_vec());
        assert_eq!(describe(&bench.call(request(put)).unwrap()), "put");
    }
    let told = describe(&bench.call(request(read_nodes(&[0, 1_999, 2_499, 2_500], false))).unwrap());
    assert_eq!(told, "n0 Now 0 20 b; n1999 Now 0 20 b; n2499 Now 0 20 b; none");
    assert_eq!(describe(&bench.call(request(QueueVerb::Purge)).unwrap()), "0");
    assert_eq!(redis::cmd("DBSIZE").query::<u64>(&mut bench.raw).unwrap(), 1, "its record");
    let left: Vec<String> = redis::cmd("KEYS").arg("*flow*").query(&mut bench.raw).unwrap();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_flow_is_told_with_its_plan() {
    given(calm())
        .call(get_flow("f"))
        .replies("f version 30 created {then-5} ended 0 sum plan g n s")
        .changes_nothing();
    given(calm()).call(get_flow("g")).replies("unknown").changes_nothing();
    given(nothing()).call(get_flow("f")).replies("unknown").changes_nothing();
}

#[test]
fn those_that_live_are_listed_before_those_that_have_ended_the_latest_first() {
    let all = || {
        calm()
            .flow("a", "{then-9}", "")
            .flow("b", "{then-5}", "")
            .draft("d", "{then-1}", "")
            .ended_flow("x", "{then-500}", "")
            .ended_flow("y", "{then-600}", "")
    };
    let live = |id: &str, ago: u32| format!("{id} version 30 created {{then-{ago}}} ended 0 sum");
    let ended = |id: &str, ago: u32| format!("{id} version 30 created 5 ended {{then-{ago}}} sum");
    let (f, b, a) = (live("f", 5), live("b", 5), live("a", 9));
    let (x, y) = (ended("x", 500), ended("y", 600));
    given(all()).call(list_flows(None, 9)).replies(&format!("{f}; {b}; {a}; {x}; {y}")).changes_nothing();
    // A draft counts as looked at.
    given(all()).call(list_flows(None, 2)).replies(&format!("{f} | next 16/{{then-5}}/f")).changes_nothing();
    let mut bench = Bench::new();
    bench.set_up(&all());
    let then = bench.context.then / 1_000;
    let mut page =
        |from: &str, max: u32| describe(&bench.call(request(list_flows(Some(from), max))).unwrap());
    let filled = |text: &str| {
        [1, 5, 9, 500, 600].iter().fold(text.to_owned(), |text, ago| {
            text.replace(&format!("{{then-{ago}}}"), &(then - ago).to_string())
        })
    };
    let at = |part: u8, ago: u64, id: &str| format!("{part}/{}/{id}", then - ago);
    assert_eq!(page(&at(16, 5, "f"), 2), filled(&format!("{b}; {a} | next 16/{{then-9}}/a")));
    assert_eq!(page(&at(16, 9, "a"), 1), filled(&format!("{x} | next 17/{{then-500}}/x")));
    assert_eq!(page(&at(17, 500, "x"), 1), filled(&y));
    assert_eq!(page(&at(17, 600, "y"), 1), "");
    // The one of the place may be gone.
    assert_eq!(page(&at(16, 5, "c"), 1), filled(&format!("{b} | next 16/{{then-5}}/b")));
}

#[test]
fn nodes_are_told_as_they_were_given() {
    let node = NewNode {
        queue: Some("mails".into()),
        due: Due::In(ms(5_000)),
        priority: 9,
        max_attempts: 3,
        expires: Some(ms(700)),
        key: Some(task_key("k 1").unwrap()),
        body: [].into(),
        ..node("a")
    };
    let at = NewNode { due: Due::At(77), queue: None, ..node.clone() };
    let mut bench = Bench::new();
    bench.set_up(&nothing());
    assert_eq!(describe(&bench.call(request(put_flow(7, [node, at]))).unwrap()), "put");
    assert_eq!(
        describe(&bench.call(request(read_nodes(&[1, 0, 2], false))).unwrap()),
        "a At(77) 9 3 expires 700 key k 1 ; a in mails In(5s) 9 3 expires 700 key k 1 ; none"
    );
    let results = calm().node_result(1, "r");
    given(results).call(read_nodes(&[0, 1, 2], true)).replies("none; r; none").changes_nothing();
    given(nothing()).call(read_nodes(&[0], false)).replies("none").changes_nothing();
}

#[test]
fn no_more_nodes_are_told_than_fit_but_always_one() {
    let mut bench = Bench::new();
    bench.set_up(&nothing());
    let big = |name: &str, bytes: usize| NewNode { body: vec![7; bytes].into(), ..node(name) };
    let nodes = [big("a", 700_000), big("b", 300_000), big("c", 100_000)];
    bench.call(request(put_flow(7, nodes))).unwrap();
    let told =
        |bench: &mut Bench, nodes: &[u32]| describe(&bench.call(request(read_nodes(nodes, false))).unwrap());
    assert_eq!(told(&mut bench, &[0, 1, 2]), "a Now 0 20 700000 bytes; b Now 0 20 300000 bytes");
    assert_eq!(told(&mut bench, &[2, 9]), "c Now 0 20 100000 bytes; none");
    for number in 0..3 {
        let field = format!("f\u{2}{number}");
        redis::cmd("HSET")
            .arg("stanchion:flow-nodes:{Queue:q}")
            .arg(field)
            .arg(vec![7_u8; 600_000 * 2])
            .exec(&mut bench.raw)
            .unwrap();
    }
    assert_eq!(describe(&bench.call(request(read_nodes(&[1, 0], true))).unwrap()), "1200000 bytes");
}

#[test]
fn a_purge_leaves_nothing_of_flows() {
    let full = calm()
        .ready("f/a", 1, "node 0 f")
        .draft("d", "{then-1}", "")
        .node_result(0, "r")
        .source("mails", "71")
        .done("60", "1 f", "r")
        .outbox("first_message 60, last_message 60, walk_at {then+9000}, live_flows 1");
    given(full)
        .call(QueueVerb::Purge)
        .replies("1")
        .leaves(nothing().counts("counter 60, sequence 20").resting());
}
