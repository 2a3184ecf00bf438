//! Flows: tasks that wait for others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stanchion::{
    Backoff, ClaimOptions, DeadTasks, ErrorKind, Flow, FlowState, Node, NodeState, OnDuplicate, QueueConfig,
    Retry, TaskState,
};
use stanchion_tests::faces::{AnyClaim, AnyQueue, Stop};
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::queue_support::{assert_nothing, await_one, plain, take, up_to};
use crate::{ms, secs};

fn ids(claims: &[AnyClaim]) -> Vec<&str> {
    claims.iter().map(AnyClaim::id).collect()
}

/// The nodes and what they are doing.
fn states(queue: &AnyQueue, flow: &str) -> String {
    let flow = queue.get_flow(flow).unwrap().unwrap();
    let nodes: Vec<String> =
        flow.nodes.iter().map(|node| format!("{} {}", node.name, node.state.name())).collect();
    format!("{}: {}", flow.state.name(), nodes.join(", "))
}

/// The one task that there is, done; its id.
fn done(queue: &AnyQueue) -> String {
    let claim = await_one(queue);
    claim.ack().unwrap();
    claim.id().to_owned()
}

/// Lets what is noted be worked off.
fn settle_down(queue: &AnyQueue) {
    let claims = queue.claim(up_to(1).lease(secs(30))).unwrap();
    assert!(claims.is_empty(), "{claims:?}");
}

on_every_store! {
    fn a_chain_goes_one_by_one(bench) {
        let queue = bench.client().queue("q");
        assert!(queue.enqueue_flow(Flow::chain("f", ["a", "b", "c"].map(plain))).unwrap());
        assert_eq!(states(&queue, "f"), "running: a put, b waiting, c waiting");
        let first = take(&queue);
        assert_eq!((first.id(), first.flow(), first.payload()), ("f/a", Some("f"), &b"a"[..]));
        assert_nothing(&queue);
        first.ack().unwrap();
        assert_eq!([done(&queue), done(&queue)], ["f/b", "f/c"]);
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "done: a done, b done, c done");
        let flow = queue.get_flow("f").unwrap().unwrap();
        assert!(flow.ended.unwrap() >= flow.created);
        assert_eq!((flow.size(), flow.count(NodeState::Done)), (3, 3));
        assert!(!queue.enqueue_flow(Flow::chain("f", [plain("a")])).unwrap(), "there is one of this id");
        assert_nothing(&queue);
    }

    fn a_batch_has_its_callbacks(bench) {
        let queue = bench.client().queue("q");
        let batch = |id: &str| {
            Flow::batch(id, [plain("a").max_attempts(1), plain("b")])
                .then(plain("then"))
                .failed(plain("failed"))
                .finally(plain("finally"))
        };
        queue.enqueue_flow(batch("good")).unwrap();
        assert_eq!([done(&queue), done(&queue)], ["good/a", "good/b"]);
        assert_eq!([done(&queue), done(&queue)], ["good/then", "good/finally"]);
        settle_down(&queue);
        assert_eq!(
            states(&queue, "good"),
            "done: a done, b done, then done, failed unneeded, finally done"
        );
        queue.enqueue_flow(batch("bad")).unwrap();
        let claims = queue.claim(up_to(9)).unwrap();
        claims[0].bury("no").unwrap();
        assert_eq!(done(&queue), "bad/failed", "at once, and not when all have ended");
        assert_nothing(&queue);
        claims[1].ack().unwrap();
        assert_eq!(done(&queue), "bad/finally");
        settle_down(&queue);
        assert_eq!(
            states(&queue, "bad"),
            "failed: a dead, b done, then skipped, failed done, finally done"
        );
    }

    fn a_batch_of_nothing_runs_what_comes_after(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::batch("f", []).then(plain("then")).failed(plain("failed"))).unwrap();
        assert_eq!(done(&queue), "f/then");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "done: then done, failed unneeded");
        queue.enqueue_flow(Flow::new("empty")).unwrap();
        assert_eq!(states(&queue, "empty"), "done: ");
    }

    fn a_node_waits_for_all_that_it_comes_after(bench) {
        let queue = bench.client().queue("q");
        let flow = Flow::new("f")
            .node(Node::new(plain("join")).after("b").after("a").after_end("c"))
            .node(plain("a"))
            .node(plain("b"))
            .node(Node::new(plain("c")).after("a"))
            .node(Node::new(plain("alarm")).after_failure("c").after_failure("b"));
        queue.enqueue_flow(flow).unwrap();
        let claims = queue.claim(up_to(9)).unwrap();
        assert_eq!(ids(&claims), ["f/a", "f/b"]);
        claims[0].ack().unwrap();
        let third = await_one(&queue);
        assert_eq!(third.id(), "f/c");
        third.bury("no").unwrap();
        assert_eq!(done(&queue), "f/alarm");
        claims[1].ack().unwrap();
        assert_eq!(done(&queue), "f/join");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "failed: a done, b done, c dead, join done, alarm done");
        let join = queue.get_flow("f").unwrap().unwrap().nodes.remove(3);
        assert_eq!((join.after, join.after_end, join.after_failure), (vec!["b".into(), "a".into()], vec!["c".into()], vec![]));
    }

    fn a_node_is_given_what_came_of_those_before(bench) {
        let queue = bench.client().queue("q");
        let flow = Flow::new("f")
            .node(plain("a"))
            .node(plain("b"))
            .node(Node::new(plain("c")).after("b").after_end("a"))
            .finally(plain("all"));
        queue.enqueue_flow(flow).unwrap();
        let claims = queue.claim(up_to(9)).unwrap();
        assert!(claims[0].inputs().unwrap().is_empty());
        claims[0].bury("no").unwrap();
        claims[1].ack_with(b"of b").unwrap();
        let inputs = |claim: &AnyClaim| -> Vec<(String, NodeState, Option<Vec<u8>>)> {
            let inputs = claim.inputs().unwrap();
            inputs.into_iter().map(|input| (input.node, input.state, input.result.map(|result| result.to_vec()))).collect()
        };
        let third = await_one(&queue);
        let of_b = ("b".to_owned(), NodeState::Done, Some(b"of b".to_vec()));
        let of_a = ("a".to_owned(), NodeState::Dead, None);
        assert_eq!(inputs(&third), [of_b.clone(), of_a.clone()], "in the order in which they are named");
        third.ack_with(b"").unwrap();
        let last = await_one(&queue);
        assert_eq!(inputs(&last), [of_a, of_b, ("c".into(), NodeState::Done, Some(Vec::new()))]);
        queue.enqueue(plain("alone")).unwrap();
        let alone = await_one(&queue);
        assert_eq!((alone.flow(), alone.inputs().unwrap().len()), (None, 0));
    }

    fn a_node_may_be_in_another_queue(bench) {
        let (home, mails) = (bench.client().queue("q"), bench.client().queue("mails"));
        let flow = Flow::new("f")
            .node(plain("a"))
            .node(Node::new(plain("mail").key("k").priority(3)).after("a").queue("mails"))
            .node(Node::new(plain("last")).after("mail"));
        home.enqueue_flow(flow).unwrap();
        done(&home);
        settle_down(&home);
        let mail = await_one(&mails);
        assert_eq!((mail.id(), mail.flow(), mail.key(), mail.priority()), ("f/mail", Some("f"), Some("k"), 3));
        assert_eq!(mail.inputs().unwrap()[0].node, "a");
        mail.ack_with(b"sent").unwrap();
        // Whoever claims there tells it, and lets the flow go on.
        settle_down(&mails);
        let last = await_one(&home);
        assert_eq!((last.id(), last.inputs().unwrap()[0].result.as_deref()), ("f/last", Some(&b"sent"[..])));
        last.ack().unwrap();
        settle_down(&home);
        assert_eq!(states(&home, "f"), "done: a done, mail done, last done");
        let flow = home.get_flow("f").unwrap().unwrap();
        assert_eq!(flow.nodes[1].queue.as_deref(), Some("mails"));
    }

    fn members_are_added_while_one_runs(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::batch("f", [plain("a")]).then(plain("then"))).unwrap();
        let first = take(&queue);
        let more = vec![Node::new(plain("b")), Node::new(plain("c")).after("b").after("a")];
        assert!(queue.add_to_flow("f", more).unwrap());
        first.ack().unwrap();
        let second = take(&queue);
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "running: a done, then waiting, b put, c waiting");
        second.ack().unwrap();
        assert_eq!([done(&queue), done(&queue)], ["f/c", "f/then"]);
        settle_down(&queue);
        assert!(!queue.add_to_flow("f", vec![Node::new(plain("d"))]).unwrap(), "it has ended");
        assert!(!queue.add_to_flow("none", vec![Node::new(plain("d"))]).unwrap());
        assert_eq!(states(&queue, "f"), "done: a done, then done, b done, c done");
    }

    fn a_flow_is_cancelled(bench) {
        let queue = bench.client().queue("q");
        let flow = Flow::batch("f", ["a", "b"].map(plain)).then(plain("then")).finally(plain("finally"));
        queue.enqueue_flow(flow).unwrap();
        let running = take(&queue);
        assert!(queue.cancel_flow("f").unwrap());
        assert_eq!(states(&queue, "f"), "running: a ending, b cancelled, then cancelled, finally waiting");
        running.nack(Retry::After(Duration::ZERO), "told to").unwrap();
        assert_eq!(done(&queue), "f/finally");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "cancelled: a cancelled, b cancelled, then cancelled, finally done");
        assert!(!queue.cancel_flow("f").unwrap(), "it has ended");
        assert!(!queue.cancel_flow("none").unwrap());
    }

    fn a_flow_is_tried_again(bench) {
        let queue = bench.client().queue("q");
        let flow = Flow::batch("f", [plain("a"), plain("b").max_attempts(1)]).then(plain("then")).failed(plain("failed"));
        queue.enqueue_flow(flow).unwrap();
        let claims = queue.claim(up_to(9)).unwrap();
        claims[0].ack().unwrap();
        claims[1].nack(Retry::After(Duration::ZERO), "no").unwrap();
        assert_eq!(done(&queue), "f/failed");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "failed: a done, b dead, then skipped, failed done");
        assert!(queue.retry_flow("f").unwrap());
        let again = take(&queue);
        assert_eq!((again.id(), again.attempt()), ("f/b", 1));
        again.ack().unwrap();
        assert_eq!(done(&queue), "f/then");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "done: a done, b done, then done, failed done");
        assert!(!queue.retry_flow("none").unwrap());
    }

    fn every_way_to_end_is_noted(bench) {
        let queue = bench.client().queue("q");
        let names = ["removed", "cancelled", "popped", "expired", "late"];
        let mut flow = Flow::new("f");
        for (number, name) in names.into_iter().enumerate() {
            let task = plain(name).priority(9 - number as u8);
            flow = flow.node(if name == "expired" { task.expires(ms(1)).priority(0) } else { task });
        }
        queue.enqueue_flow(flow.finally(plain("finally"))).unwrap();
        queue.remove("f/removed", None).unwrap();
        queue.cancel("f/cancelled").unwrap();
        assert_eq!(queue.pop(1).unwrap()[0].id, "f/popped");
        let late = queue.claim(ClaimOptions::new().lease(ms(50)).max(1)).unwrap().remove(0);
        assert_eq!(late.id(), "f/late");
        eventually(SOON, || !late.is_valid());
        late.ack().unwrap();
        eventually(SOON, || {
            let claims = queue.claim(up_to(1)).unwrap();
            claims.iter().for_each(|claim| claim.ack().unwrap());
            queue.get_flow("f").unwrap().unwrap().state != FlowState::Running
        });
        assert_eq!(
            states(&queue, "f"),
            "failed: removed cancelled, cancelled cancelled, popped done, expired dead, late done, finally done"
        );
    }

    fn a_dead_node_that_is_kicked_runs_again_alone(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::chain("f", ["a", "b"].map(plain))).unwrap();
        take(&queue).bury("no").unwrap();
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "failed: a dead, b skipped");
        queue.kick(DeadTasks::ids(["f/a"])).unwrap();
        assert_eq!(done(&queue), "f/a");
        settle_down(&queue);
        assert_eq!(states(&queue, "f"), "failed: a done, b skipped");
    }

    fn an_enqueue_of_a_nodes_id_takes_its_place_in_the_flow(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::chain("f", ["a", "b"].map(plain))).unwrap();
        queue.enqueue(plain("f/a").payload("new").on_duplicate(OnDuplicate::Replace)).unwrap();
        let replaced = take(&queue);
        assert_eq!((replaced.payload(), replaced.flow()), (&b"new"[..], Some("f")));
        replaced.ack().unwrap();
        assert_eq!(done(&queue), "f/b");
    }

    fn a_full_queue_takes_no_flow_but_the_nodes_of_those_that_it_has(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::chain("f", ["a", "b"].map(plain))).unwrap();
        queue.configure(QueueConfig::new().max_len(Some(1))).unwrap();
        let error = queue.enqueue_flow(Flow::chain("g", [plain("a")])).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::QueueFull, Some("enqueue_flow")));
        take(&queue).ack().unwrap();
        queue.enqueue(plain("other").priority(1)).unwrap();
        settle_with(&queue, "other");
        assert_eq!(done(&queue), "f/b");
    }

    fn flows_are_listed_the_latest_first_and_those_that_run_before_those_that_have_ended(bench) {
        let queue = bench.client().queue("q");
        for id in ["a", "b", "c", "d"] {
            queue.enqueue_flow(Flow::chain(id, [plain("x").delay(secs(if id < "c" { 0 } else { 9_000 }))])).unwrap();
        }
        assert_eq!([done(&queue), done(&queue)], ["a/x", "b/x"]);
        settle_down(&queue);
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let page = queue.list_flows(from.as_deref(), 1).unwrap();
            found.extend(page.flows.into_iter().map(|flow| format!("{} {}", flow.id, flow.state.name())));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(found, ["d running", "c running", "b done", "a done"]);
        assert_eq!(queue.list_flows(Some("x"), 9).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(queue.get_flow("none").unwrap().is_none());
    }

    fn a_purge_drops_the_flows_of_the_queue(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_flow(Flow::chain("f", ["a", "b"].map(plain))).unwrap();
        queue.purge().unwrap();
        assert!(queue.get_flow("f").unwrap().is_none());
        assert_nothing(&queue);
        assert!(queue.enqueue_flow(Flow::chain("f", [plain("a")])).unwrap());
        assert_eq!(done(&queue), "f/a");
    }

    fn bad_flows_are_refused_before_anything_is_sent(bench) {
        let queue = bench.client().queue("q");
        let node = |name: &str, after: &str| Node::new(plain(name)).after(after);
        for (flow, message) in [
            (Flow::new(""), "a flow's id must not be empty"),
            (Flow::batch("f/a", [plain("a")]), "a flow's id must not contain a slash"),
            (Flow::new("f").node(node("a", "b")).node(node("b", "a")), "circle"),
            (Flow::batch("f", ["a", "a"].map(plain)), "twice"),
            (Flow::new("f").node(node("a", "x")), "has not"),
            (Flow::new("f").node(Node::new(plain("a")).queue("{")), "hash tag"),
            (Flow::batch("f", [plain("a").on_duplicate(OnDuplicate::Replace)]), "on_duplicate"),
            (Flow::batch("f", [plain("a").max_attempts(0)]), "max_attempts"),
        ] {
            let error = queue.enqueue_flow(flow).unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidArgument, Some("enqueue_flow")));
            assert!(error.to_string().contains(message), "{error}");
        }
        assert!(queue.list_flows(None, 9).unwrap().flows.is_empty());
    }

    fn a_flow_of_ten_thousand_members_ends(bench) {
        let queue = bench.client().queue("q");
        let members = (0..9_999).map(|number| plain(&number.to_string()));
        queue.enqueue_flow(Flow::batch("f", members).then(plain("then"))).unwrap();
        let mut seen = 0;
        eventually(secs(120), || {
            let claims = queue.claim(up_to(1_000).wait(secs(5))).unwrap();
            seen += claims.len();
            let last = claims.iter().any(|claim| claim.id() == "f/then");
            queue.settle(claims.iter().map(AnyClaim::acked).collect()).unwrap();
            last
        });
        assert_eq!(seen, 10_000);
    }

    fn workers_run_flows_whose_tasks_fail_now_and_then(bench) {
        let queue = bench.client().queue("q");
        for number in 0..30 {
            let flow = Flow::batch(format!("f{number}"), ["a", "b", "c"].map(|name| plain(name).max_attempts(2).backoff(Backoff::list([ms(1)]))))
                .node(Node::new(plain("d")).after("a").after_end("b"))
                .failed(plain("failed"))
                .finally(plain("finally"));
            queue.enqueue_flow(flow).unwrap();
        }
        let runs: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
        let stop = Stop::default();
        let workers: Vec<_> = (0..3).map(|_| {
            let (queue, runs) = (bench.client().queue("q"), Arc::clone(&runs));
            let worker = queue.worker(&stop, move |claim| {
                let fails = claim.id().len() + claim.id().bytes().map(usize::from).sum::<usize>();
                if claim.id().ends_with("finally") || claim.id().ends_with("failed") || fails % 3 > 0 {
                    *runs.lock().unwrap().entry(claim.id().to_owned()).or_default() += 1;
                    return Ok(());
                }
                Err("now and then".into())
            });
            let worker = worker.concurrency(2);
            task(move || worker.run())
        }).collect();
        eventually(secs(60), || {
            let page = queue.list_flows(None, 100).unwrap();
            page.flows.len() == 30 && page.flows.iter().all(|flow| flow.state != FlowState::Running)
        });
        stop.stop();
        for worker in workers {
            worker.join_within(secs(30)).unwrap();
        }
        let runs = runs.lock().unwrap();
        assert!(runs.values().all(|count| *count == 1), "{runs:?}");
        assert_eq!(runs.keys().filter(|id| id.ends_with("finally")).count(), 30);
        assert!(queue.all(TaskState::Ready).is_empty());
    }
}

/// Takes this task, which is the one that there is, and lets what is noted be worked off.
fn settle_with(queue: &AnyQueue, id: &str) {
    assert_eq!(done(queue), id);
}

on_both_faces! {
    fn a_node_whose_task_was_lost_elsewhere_ends_its_flow(fixture) {
        let (home, mails) = (fixture.one.queue("q"), fixture.one.queue("mails"));
        let flow = Flow::new("f").node(Node::new(plain("mail")).queue("mails")).finally(plain("finally"));
        home.enqueue_flow(flow).unwrap();
        mails.purge().unwrap();
        assert_nothing(&home);
        fixture.clock.advance(secs(120));
        assert_eq!(done(&home), "f/finally");
        settle_down(&home);
        assert_eq!(states(&home, "f"), "failed: mail cancelled, finally done");
    }

    fn a_flow_that_waits_for_tasks_that_live_is_left_alone(fixture) {
        let (home, mails) = (fixture.one.queue("q"), fixture.one.queue("mails"));
        home.enqueue_flow(Flow::new("f").node(Node::new(plain("mail")).queue("mails")).node(plain("a").delay(secs(9_000)))).unwrap();
        for _ in 0..5 {
            fixture.clock.advance(secs(120));
            assert_nothing(&home);
        }
        assert_eq!(states(&home, "f"), "running: mail put, a put");
        done(&mails);
    }
}
