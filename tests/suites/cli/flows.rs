//! `stanchion flows`.

use serde_json::json;
use stanchion::blocking::Client;
use stanchion::{Flow, Node, Task};

use super::harness::{Place, on_both_stores};

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
}
