#![allow(clippy::unwrap_used, reason = "tests may panic")]
//! Random flows on queues in memory, against what their edges mean.

mod store;

use fastrand::Rng;

use super::graph::{Edge, Graph, NodeGraph, NodeName, read_names, write_names};
use super::plan::{FlowState, NodeState, Plan, read_summary};
use super::rounds::Rounds;
use crate::base::name::TaskId;
use crate::protocol::{CallId, ClientId, NodeEvent};
use store::{Store, id, queue};

const FLOWS: u64 = 10_000;

fn edge(rng: &mut Rng) -> Edge {
    [Edge::Success, Edge::Success, Edge::End, Edge::Failure][rng.usize(0..4)]
}

fn random_graph(rng: &mut Rng) -> Graph {
    let (members, all) = (rng.usize(0..10), rng.usize(0..4));
    let mut nodes = Vec::new();
    for number in 0..members + all {
        let mut others: Vec<u32> = (0..number as u32).collect();
        rng.shuffle(&mut others);
        others.truncate(if number < members { rng.usize(0..4) } else { 0 });
        nodes.push(NodeGraph {
            after: others.into_iter().map(|other| (other, edge(rng))).collect(),
            after_all: (number >= members).then(|| edge(rng)),
            elsewhere: rng.usize(0..4) == 0,
        });
    }
    Graph { nodes }
}

/// What becomes of each node, by what its edges mean, if this becomes of each that runs.
fn expected(graph: &Graph, outcomes: &[NodeState]) -> Vec<NodeState> {
    let mut states: Vec<NodeState> = Vec::new();
    for (number, node) in graph.nodes.iter().enumerate() {
        let members = graph.nodes.iter().take_while(|other| other.after_all.is_none()).count();
        let of_all = node.after_all.map(|edge| {
            let needed = (0..members).filter(|other| states[*other] != NodeState::Unneeded);
            needed.map(|other| (states[other], edge)).collect::<Vec<_>>()
        });
        let named = node.after.iter().map(|(other, edge)| (states[*other as usize], *edge));
        let edges: Vec<(NodeState, Edge)> = named.chain(of_all.into_iter().flatten()).collect();
        let bad = |state: NodeState| !matches!(state, NodeState::Done | NodeState::Unneeded);
        let wants_failure = node.after_all == Some(Edge::Failure)
            || node.after.iter().any(|(_, edge)| *edge == Edge::Failure);
        let unneeded =
            edges.iter().any(|(state, edge)| *edge == Edge::Success && *state == NodeState::Unneeded);
        let skipped = edges.iter().any(|(state, edge)| *edge == Edge::Success && bad(*state));
        let failed = edges.iter().any(|(state, edge)| *edge == Edge::Failure && bad(*state));
        states.push(match () {
            () if skipped || unneeded => NodeState::Skipped,
            () if wants_failure && !failed => NodeState::Unneeded,
            () => outcomes[number],
        });
        // Which of both it is if an edge says this and another that, is no matter: but it is one of them.
        if unneeded && !skipped {
            states[number] = NodeState::Unneeded;
        }
    }
    states
}

struct World {
    rng: Rng,
    store: Store,
    flow: TaskId,
    outcomes: Vec<NodeState>,
    slot: CallId,
    /// Whoever is stepping at the moment; one that is dropped has died.
    steppers: Vec<Rounds>,
}

impl World {
    fn new(seed: u64, graph: &Graph) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut store = Store::telling(rng.u32(1..5));
        let flow = id("f");
        store.begin(&flow, graph);
        let outcome = |rng: &mut Rng| {
            [NodeState::Done, NodeState::Done, NodeState::Done, NodeState::Dead, NodeState::Cancelled]
                [rng.usize(0..5)]
        };
        let outcomes = graph.nodes.iter().map(|_| outcome(&mut rng)).collect();
        let slot = CallId { client: ClientId(1), slot: 1, number: 0 };
        Self { rng, store, flow, outcomes, slot, steppers: Vec::new() }
    }

    /// One thing happens: a request of somebody who steps, the death of one, or the end of a task; now and then the flow's tasks
    /// are to be looked for.
    fn act(&mut self) {
        let tasks = self.store.tasks();
        self.store.walk |= self.rng.u32(0..32) == 0;
        match self.rng.u32(0..8) {
            0 if self.steppers.len() < 3 => {
                let name = if self.rng.bool() { "a" } else { "b" };
                self.steppers.push(Rounds::new(queue(name)));
            }
            1 if !self.steppers.is_empty() && self.rng.bool() => {
                let index = self.rng.usize(0..self.steppers.len());
                self.steppers.swap_remove(index);
            }
            2 if !tasks.is_empty() => {
                let (name, task, node) = self.rng.choice(tasks).unwrap();
                let event = match self.outcomes[node as usize] {
                    NodeState::Done => NodeEvent::Done,
                    NodeState::Dead => NodeEvent::Dead,
                    _ => NodeEvent::Cancelled,
                };
                self.store.end(&name, &task, Some(event));
            }
            _ if !self.steppers.is_empty() => {
                let index = self.rng.usize(0..self.steppers.len());
                match self.steppers[index].request(&mut self.slot) {
                    Some((queue, verb)) => {
                        let reply = self.store.perform(&queue, &verb);
                        // Its answer may be lost.
                        match self.rng.u32(0..16) {
                            0 => self.steppers[index].give_up(),
                            _ => self.steppers[index].replied(reply),
                        }
                    }
                    None => drop(self.steppers.swap_remove(index)),
                }
            }
            _ => {}
        }
    }

    fn run(&mut self, most: usize) -> bool {
        let flow = self.flow.clone();
        for _ in 0..most {
            let is_calm = self.store.is_quiet() && self.store.tasks().is_empty() && self.steppers.is_empty();
            if is_calm && self.store.has_ended(&flow) {
                return true;
            }
            self.act();
        }
        false
    }

    fn states(&mut self) -> Vec<NodeState> {
        let flow = self.flow.clone();
        self.store.plan(&flow).nodes().to_vec()
    }

    fn puts(&self, node: usize) -> u32 {
        self.store.puts.get(&(self.flow.clone(), node as u32)).copied().unwrap_or_default()
    }
}

#[test]
fn every_flow_ends_and_each_node_runs_as_its_edges_say() {
    for seed in 0..FLOWS {
        let graph = random_graph(&mut Rng::with_seed(seed));
        let mut world = World::new(seed, &graph);
        assert!(world.run(100_000), "seed {seed}: it does not end");
        let expected = expected(&graph, &world.outcomes);
        let (states, flow) = (world.states(), world.flow.clone());
        assert_eq!(states, expected, "seed {seed}: {graph:?}");
        assert!(world.store.has_ended(&flow), "seed {seed}");
        for (node, state) in states.iter().enumerate() {
            let ran = !matches!(state, NodeState::Skipped | NodeState::Unneeded);
            assert_eq!(world.puts(node), u32::from(ran), "seed {seed}: node {node}");
        }
    }
}

#[test]
fn a_flow_that_is_cancelled_ends_and_only_those_run_that_wait_for_ends_alone() {
    let (mut finals, mut stopped) = (0, 0);
    for seed in 0..FLOWS / 2 {
        let graph = random_graph(&mut Rng::with_seed(seed));
        let mut world = World::new(seed, &graph);
        let when = world.rng.usize(0..60);
        let had_ended = world.run(when);
        let before: Vec<u32> = (0..graph.nodes.len()).map(|node| world.puts(node)).collect();
        let flow = world.flow.clone();
        world.store.post("a", &flow, 0, NodeEvent::Cancel);
        assert!(world.run(100_000), "seed {seed}: it does not end");
        assert!(world.store.has_ended(&flow), "seed {seed}");
        if had_ended {
            continue;
        }
        for (node, state) in world.states().iter().enumerate() {
            assert!(state.has_ended() && world.puts(node) <= 1, "seed {seed}: node {node}");
            let edges: Vec<Edge> = graph.nodes[node]
                .after
                .iter()
                .map(|(_, edge)| *edge)
                .chain(graph.nodes[node].after_all)
                .collect();
            let is_final = !edges.is_empty() && edges.iter().all(|edge| *edge == Edge::End);
            if is_final {
                assert_eq!(world.puts(node), 1, "seed {seed}: node {node} runs in any case");
                finals += 1;
            }
            stopped +=
                u32::from(before[node] == 0 && world.puts(node) == 0 && *state == NodeState::Cancelled);
        }
    }
    assert!(finals > 1_000 && stopped > 1_000, "{finals} {stopped}");
}

#[test]
fn a_flow_that_is_tried_again_runs_what_had_not_succeeded_and_nothing_else() {
    let mut again = 0;
    for seed in 0..FLOWS / 2 {
        let graph = random_graph(&mut Rng::with_seed(seed));
        let mut world = World::new(seed, &graph);
        assert!(world.run(100_000), "seed {seed}: it does not end");
        let (first, flow) = (world.states(), world.flow.clone());
        let before: Vec<u32> = (0..graph.nodes.len()).map(|node| world.puts(node)).collect();
        world.outcomes.fill(NodeState::Done);
        world.store.post("a", &flow, 0, NodeEvent::Retry);
        assert!(world.run(100_000), "seed {seed}: it does not end the second time");
        for (node, state) in world.states().iter().enumerate() {
            let ran = world.puts(node) - before[node];
            if first[node] == NodeState::Done {
                assert_eq!((ran, *state), (0, NodeState::Done), "seed {seed}: node {node} was done");
            } else if matches!(first[node], NodeState::Dead | NodeState::Cancelled)
                && *state == NodeState::Done
            {
                // In another queue it may come twice: whoever stepped may have died before the step.
                assert!(
                    ran == 1 || (ran > 1 && graph.nodes[node].elsewhere),
                    "seed {seed}: node {node} ran {ran} times"
                );
                again += 1;
            }
        }
        let state = world.store.plan(&flow).state();
        assert_eq!(state, FlowState::Done, "seed {seed}: {graph:?} {first:?} {:?}", world.states());
    }
    assert!(again > 1_000, "{again}");
}

#[test]
fn a_node_that_was_lost_ends_its_flow_and_one_whose_end_is_on_its_way_is_not_lost() {
    for seed in 0..1_000 {
        let graph = random_graph(&mut Rng::with_seed(seed));
        let mut world = World::new(seed, &graph);
        for _ in 0..100 {
            world.act();
        }
        // A purge, say: all that lives goes, and nobody says so.
        for (name, task, _) in world.store.tasks() {
            world.store.end(&name, &task, None);
        }
        let done =
            |world: &mut World| world.states().iter().filter(|state| **state == NodeState::Done).count();
        let before = done(&mut world);
        let flow = world.flow.clone();
        for _ in 0..1_000 {
            if world.store.has_ended(&flow) {
                break;
            }
            world.store.walk = true;
            world.run(1_000);
            if world.steppers.is_empty() {
                world.steppers.push(Rounds::new(queue("a")));
            }
        }
        assert!(world.store.has_ended(&flow), "seed {seed}: {:?}", world.states());
        assert!(done(&mut world) >= before, "seed {seed}");
    }
}

/// Steps from the queue `name`, to the end.
fn step(store: &mut Store, mut rounds: Rounds) {
    let mut slot = CallId { client: ClientId(1), slot: 1, number: 0 };
    while let Some((queue, verb)) = rounds.request(&mut slot) {
        if store.refuses(&queue) {
            rounds.refused();
        } else {
            let reply = store.perform(&queue, &verb);
            rounds.replied(reply);
        }
    }
}

/// Two nodes, of which the first is in the queue `b`.
fn one_elsewhere() -> Graph {
    let first = NodeGraph { elsewhere: true, ..NodeGraph::default() };
    Graph { nodes: vec![first, NodeGraph { after: vec![(0, Edge::End)], ..NodeGraph::default() }] }
}

#[test]
fn whoever_has_a_task_of_another_flow_steps_the_home_of_the_node_that_ended() {
    let mut store = Store::telling(9);
    store.begin(&id("f"), &one_elsewhere());
    step(&mut store, Rounds::new(queue("a")));
    let (name, task, _) = store.tasks().pop().unwrap();
    store.end(&name, &task, Some(NodeEvent::Done));
    // Nobody claims from the queue `a`.
    step(&mut store, Rounds::brief(queue("b")));
    assert_eq!(store.tasks(), [("a".to_owned(), id("f/1"), 1)]);
}

#[test]
fn a_node_that_can_be_put_nowhere_is_cancelled_and_the_flow_goes_on() {
    let mut store = Store::telling(9);
    store.taken = Some("b");
    store.begin(&id("f"), &one_elsewhere());
    step(&mut store, Rounds::new(queue("a")));
    assert_eq!(store.plan(&id("f")).nodes(), [NodeState::Cancelled, NodeState::Put]);
    assert!(store.is_quiet());
}

#[test]
fn news_for_a_home_that_is_none_is_dropped() {
    let mut store = Store::telling(9);
    store.post("b", &id("f"), 0, NodeEvent::Done);
    store.taken = Some("a");
    step(&mut store, Rounds::new(queue("b")));
    assert!(store.is_quiet());
}

#[test]
fn a_fan_of_ten_thousand_goes_in_steps_of_a_thousand() {
    let mut nodes = vec![NodeGraph::default(); 10_000];
    nodes.push(NodeGraph { after_all: Some(Edge::Success), ..NodeGraph::default() });
    let graph = Graph { nodes };
    let mut plan = Plan::new(graph.nodes.len());
    let mut puts = 0;
    for round in 0.. {
        let effects = plan.settle(&graph, &mut 1_000);
        puts += effects.puts.len();
        assert!(effects.puts.len() <= 1_000);
        if !effects.has_more {
            assert_eq!((round, puts), (9, 10_000));
            break;
        }
    }
    for node in 0..10_000 {
        plan.apply(&graph, NodeEvent::Done, node, 0);
    }
    assert_eq!(plan.settle(&graph, &mut 1_000).puts, [10_000]);
    plan.apply(&graph, NodeEvent::Done, 10_000, 0);
    assert_eq!(plan.state(), FlowState::Done);
}

#[test]
fn a_dead_task_that_is_kicked_and_done_counts_and_late_news_of_another_try_does_not() {
    let graph = Graph { nodes: vec![NodeGraph::default(); 2] };
    let mut plan = Plan::new(2);
    plan.settle(&graph, &mut 9);
    plan.apply(&graph, NodeEvent::Dead, 0, 0);
    plan.apply(&graph, NodeEvent::Cancelled, 0, 0);
    assert_eq!(plan.nodes()[0], NodeState::Dead);
    plan.apply(&graph, NodeEvent::Done, 0, 0);
    assert_eq!(plan.nodes()[0], NodeState::Done);
    plan.apply(&graph, NodeEvent::Retry, 0, 0);
    plan.apply(&graph, NodeEvent::Lost, 1, 0);
    assert_eq!(plan.nodes()[1], NodeState::Put, "it was looked for before");
    plan.apply(&graph, NodeEvent::Lost, 1, 1);
    assert_eq!(plan.nodes()[1], NodeState::Cancelled);
    plan.apply(&graph, NodeEvent::Done, 7, 0);
}

#[test]
fn what_is_stored_is_read_again() {
    let graph = random_graph(&mut Rng::with_seed(7));
    assert_eq!(Graph::read(&graph.write()), Some(graph.clone()));
    let mut plan = Plan::new(3);
    plan.apply(&graph, NodeEvent::Cancel, 0, 0);
    let three = Graph { nodes: vec![NodeGraph::default(); 3] };
    plan.settle(&three, &mut 9);
    assert_eq!(Plan::read(&plan.write()), Some(plan.clone()));
    assert_eq!(plan.summary(), "cancelled 0 0 0 0 0 3 0 0");
    assert_eq!(read_summary(&plan.summary()), Some((FlowState::Cancelled, [0, 0, 0, 0, 0, 3, 0, 0])));
    let names = [NodeName("a".into(), None), NodeName("b".into(), Some("mails".into()))];
    assert_eq!(write_names(&names), br#"[["a"],["b","mails"]]"#);
    assert_eq!(read_names(&write_names(&names)).unwrap(), names);
    for bad in [&b"\x08"[..], b"\x08\x08", b"\xff\xff\xff\xff\xff\xff"] {
        assert_eq!(Graph::read(bad), None, "{bad:?}");
    }
    assert_eq!(Plan::read(b"\0\0\0\0\0\x63"), None);
    assert_eq!(read_summary("done 1"), None);
}
