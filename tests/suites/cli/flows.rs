//! `stanchion flows`.

use serde_json::json;
use stanchion::blocking::Client;
use stanchion::{Flow, FlowState, Node, NodeState, Task};
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, on_both_stores};

/// Flows whose workers are killed, and children of each.
const FLOWS: u32 = 4;
const CHILDREN: u32 = 3;

fn put(place: &Place, id: &str) {
    let queue = Client::open(place.url()).unwrap().queue("q");
    let flow = Flow::new(id)
        .node(Task::new("a"))
        .node(Node::new(Task::new("b")).after("a").queue("other"))
        .finally(Task::new("c"));
    assert!(queue.enqueue_flow(flow).unwrap());
}

on_both_stores! {
    fn flows_are_listed_and_shown(place) {
        assert_eq!(place.finish(&["flows", "ls", "q"]).succeeded(), "ID  STATE  NODES  ENDED  FAILED  CREATED\n");
        put(place, "f");
        assert_eq!(place.json(&["queues", "stats", "q"])[0]["flows"], 1);
        assert!(place.finish(&["metrics", "q"]).succeeded().contains("stanchion_queue_flows{queue=\"q\"} 1\n"));
        let listed = place.json(&["flows", "ls", "q"]);
        assert_eq!((&listed[0]["id"], &listed[0]["counts"]), (&json!("f"), &json!({ "put": 1, "waiting": 2 })));
        let table = place.finish(&["flows", "ls", "q"]).succeeded().to_owned();
        assert!(table.contains("f   running  3      0      0"), "{table}");
        let shown = place.finish(&["flows", "show", "q", "f"]).succeeded().to_owned();
        for line in ["STATE:    running", "NODES:    2 waiting, 1 put", "a     put      -      -", "b     waiting  other  a", "c     waiting  -      all (finally)"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let one = place.json(&["flows", "show", "q", "f"]).remove(0);
        assert_eq!((&one["nodes"][1]["after"], &one["nodes"][1]["queue"]), (&json!(["a"]), &json!("other")));
        assert!(place.finish(&["flows", "show", "q", "none"]).failed(9).contains("there is none"));
    }

    fn flows_are_worked_off_cancelled_and_retried(place) {
        put(place, "f");
        assert_eq!(place.finish(&["flows", "cancel", "q", "f"]).succeeded(), "f cancelled\n");
        place.finish(&["work", "q", "--until-empty", "-q", "--", "true"]).succeeded();
        assert_eq!(place.json(&["flows", "show", "q", "f"])[0]["state"], "cancelled");
        assert!(place.finish(&["flows", "cancel", "q", "f"]).failed(9).contains("there is none that runs"));
        assert_eq!(place.json(&["flows", "retry", "q", "f"])[0]["retried"], true);
        place.finish(&["work", "q", "--until-empty", "-q", "--", "true"]).succeeded();
        place.finish(&["work", "other", "--until-empty", "-q", "--", "true"]).succeeded();
        let shown = place.json(&["flows", "show", "q", "f"]).remove(0);
        assert_eq!((&shown["state"], &shown["counts"]), (&json!("done"), &json!({ "done": 3 })));
        assert!(place.finish(&["flows", "retry", "q", "none"]).failed(9).contains("there is none"));
    }

    // Each node comes into its queue once, whoever is killed and when.
    fn flows_end_although_their_workers_are_killed(place) {
        let client = Client::open(place.url()).unwrap();
        let queue = client.queue("q");
        for flow in 0..FLOWS {
            let children = (0..CHILDREN).map(|child| Task::new(child.to_string()));
            let then = Node::new(Task::new("then")).queue("other");
            let flow = Flow::batch(flow.to_string(), children).then(then).finally(Task::new("finally"));
            assert!(queue.enqueue_flow(flow).unwrap());
        }
        let flows = || (0..FLOWS).map(|flow| queue.get_flow(&flow.to_string()).unwrap().unwrap()).collect::<Vec<_>>();
        let done = || flows().iter().map(|flow| flow.count(NodeState::Done)).sum::<u32>();
        let work = |queue: &str| place.start(&["work", queue, "-j", "3", "--lease", "1", "--", "true"]);
        let (all, mut kills) = (FLOWS * (CHILDREN + 2), 0);
        while done() < all {
            let before = done();
            let _workers = [work("q"), work("other"), work("q")];
            // One that was on the way when its worker was killed is looked for after a minute.
            eventually(3 * LONG, || done() >= all.min(before + 3));
            // They are killed here, in the midst of whatever they do.
            kills += 3;
        }
        assert!(kills > 3, "none was killed before the end");
        assert!(flows().iter().all(|flow| flow.state == FlowState::Done));
        let enqueued = |name: &str| client.queue(name).stats().unwrap().enqueued;
        let nodes = [FLOWS * (CHILDREN + 1), FLOWS].map(u64::from);
        assert_eq!([enqueued("q"), enqueued("other")], nodes);
    }
}
