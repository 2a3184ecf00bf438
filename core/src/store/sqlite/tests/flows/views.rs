//! Looking at flows.

use super::*;

#[test]
fn live_flows_are_listed_first_and_the_latest_of_each_kind() {
    let queue = queue();
    for name in ["e1", "e2", "b", "a", "c"] {
        queue.begin(name, &[]);
    }
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    queue.pass(SECOND);
    queue.begin("late", &[]);
    for name in ["e2", "e1"] {
        queue.step_all(name, |step| step.ended = true);
        queue.pass(SECOND);
    }
    let all = "late c b a e1 e2";
    assert_eq!(queue.list_flows(None, 99), (all.to_owned(), None));
    for max in 1..=6 {
        let (mut names, mut from) = (Vec::new(), None);
        loop {
            let (page, next) = queue.list_flows(from, max);
            assert!(page.split(' ').count() <= max as usize);
            names.push(page);
            let Some(next) = next else { break };
            // As users keep it.
            from = Some(next);
        }
        assert_eq!(names.join(" "), all, "{max} a page");
    }
    let (_, place) = queue.list_flows(None, 4);
    let place = place.unwrap();
    assert_eq!((place.part, &*place.member), (Place::FLOWS, &b"a"[..]));
    let (_, place) = queue.list_flows(None, 5);
    assert_eq!(place.unwrap().part, Place::FLOWS_ENDED);
}

#[test]
fn a_page_has_a_hundred_flows_at_most() {
    let queue = queue();
    for number in 0..101 {
        queue.begin(&number.to_string(), &[]);
    }
    let (names, next) = queue.list_flows(None, 1_000);
    assert_eq!(names.split(' ').count(), 100);
    assert_eq!(queue.list_flows(next, 1_000).0.split(' ').count(), 1);
}

#[test]
fn looking_at_nodes_has_room_for_so_many_bytes_but_for_one() {
    let queue = queue();
    let sized = |name, size| NewNode { body: vec![1; size].into(), ..node(name) };
    let (half, large) = (MAX_REPLY_BYTES / 2, MAX_REPLY_BYTES + 1);
    let nodes = vec![sized("a", half), sized("b", half), sized("c", 1), sized("d", large)];
    queue.put_flow(PutFlow { nodes: nodes.into(), ..flow_of("f", &[]) });
    let count = |nodes: &[u32]| queue.read_nodes("f", nodes.into()).len();
    assert_eq!((count(&[0, 1, 2]), count(&[3, 0]), count(&[9, 3, 0])), (2, 1, 1));
    assert_eq!(queue.read_nodes("unknown", vec![0, 1]), [None, None]);
    assert_eq!(queue.results("unknown", vec![0]), [None]);
    queue.put_flow(PutFlow { plan: None, ..flow_of("draft", &["a"]) });
    assert_eq!(queue.read_nodes("draft", vec![0]), [None]);
}

#[test]
fn nodes_are_lost_if_they_do_not_live_and_their_ends_are_not_told() {
    let queue = queue();
    queue.begin("f", &["a"]);
    queue.enqueue_all(vec![node_task("acked"), task("lives")]);
    queue.ack("acked");
    let nodes = [
        ("acked", mark("f", 7)),
        ("lives", mark("f", 1)),
        ("gone", mark("f", 2)),
        // Its number stands in the message that the flow begins.
        ("gone", mark("f", 0)),
        ("gone", NodeOf { home: Some("home".into()), ..mark("f", 7) }),
    ];
    assert_eq!(queue.lost(&nodes), [2, 3, 4]);
    let other = Message { number: 1, event: NodeEvent::Lost, of: mark("x", 1), retries: 0, result: None };
    queue.post(None, vec![other.clone(); 998]);
    assert_eq!(queue.lost(&nodes), [2, 3, 4]);
    queue.post(None, vec![other]);
    assert_eq!(queue.lost(&nodes), Vec::<u32>::new(), "that takes too long to find out");
}
