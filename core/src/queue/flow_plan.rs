//! A flow, checked and in order: what is sent of it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::error::Error;
use crate::base::name::TaskId;
use crate::engine::flow::{Edge, Graph, NodeGraph, NodeName, Plan, write_names};
use crate::protocol::{
    AFTER_ALL_MAX, EDGES_MAX, FLOW_BYTES, FlowPlan, MAX_REQUEST_BYTES, NODES_BATCH, NODES_MAX, NewNode,
    PutFlow, Version,
};
use crate::queue::flow::Node;

/// The nodes that a flow has already, and those that are to be added to it.
pub(crate) struct Nodes {
    pub(crate) names: Vec<NodeName>,
    pub(crate) graph: Graph,
    pub(crate) plan: Plan,
}

impl Nodes {
    pub(crate) fn none() -> Self {
        Self { names: Vec::new(), graph: Graph::default(), plan: Plan::new(0) }
    }

    /// Adds nodes, each behind those that it waits for; as they are to be stored, in that order.
    pub(crate) fn add(
        &mut self,
        flow: &TaskId,
        nodes: &[Node],
        own_queue: &str,
    ) -> Result<Vec<NewNode>, Error> {
        if self.names.len() + nodes.len() > NODES_MAX {
            let count = self.names.len() + nodes.len();
            return Err(Error::invalid(format!("a flow has at most {NODES_MAX} nodes, not {count}")));
        }
        let mut places: HashMap<String, u32> =
            (0..).zip(&self.names).map(|(place, name)| (name.0.clone(), place)).collect();
        let mut new = Vec::with_capacity(nodes.len());
        for node in in_order(nodes, &places, &self.graph)? {
            let stored = new_node(flow, node, own_queue)?;
            let place = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            // In order, so each is known by now.
            let after =
                node.after.iter().filter_map(|(name, edge)| Some((*places.get(name)?, *edge))).collect();
            let elsewhere = stored.queue.is_some();
            self.graph.nodes.push(NodeGraph { after, after_all: node.after_all, elsewhere });
            self.names.push(NodeName(node.name().to_owned(), stored.queue.as_deref().map(str::to_owned)));
            places.insert(node.name().to_owned(), place);
            new.push(stored);
        }
        self.check_edges()?;
        let bytes: usize = new.iter().map(|node| node.body.len()).sum();
        if bytes > FLOW_BYTES {
            return Err(Error::invalid(format!("the payloads have {bytes} bytes, more than {FLOW_BYTES}")));
        }
        self.plan.grow(self.names.len());
        Ok(new)
    }

    /// Each step looks at all of them.
    fn check_edges(&self) -> Result<(), Error> {
        let edges: usize = self.graph.nodes.iter().map(|node| node.after.len()).sum();
        if edges > EDGES_MAX {
            let message = format!(
                "nodes of a flow may name {EDGES_MAX} others in all, not {edges}: let them come after one that comes after those"
            );
            return Err(Error::invalid(message));
        }
        let after_all = self.graph.nodes.iter().filter(|node| node.after_all.is_some()).count();
        if after_all > AFTER_ALL_MAX {
            let message =
                format!("at most {AFTER_ALL_MAX} nodes of a flow wait for all others, not {after_all}");
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    /// Whether this one is there already, with the same queue and after the same nodes: whoever adds it may be running again.
    pub(crate) fn has(&self, node: &Node, own_queue: &str) -> bool {
        let Some(place) = self.names.iter().position(|name| name.0 == node.name()) else { return false };
        let queue = node.queue.as_deref().filter(|queue| *queue != own_queue);
        self.names[place].1.as_deref() == queue && after(&self.graph, &self.names, place) == node.after
    }

    /// What is stored of the plan.
    pub(crate) fn stored(&self) -> FlowPlan {
        FlowPlan {
            graph: self.graph.write().into(),
            names: write_names(&self.names).into(),
            states: self.plan.write().into(),
            summary: self.plan.summary().into(),
        }
    }
}

/// The requests that put the nodes in, from this place on: as few as may be, of which the last one has the plan.
pub(crate) fn parts(
    id: &TaskId,
    token: u64,
    first: usize,
    nodes: Vec<NewNode>,
    plan: FlowPlan,
    adds_to: Option<Version>,
) -> Vec<PutFlow> {
    let mut parts: Vec<Vec<NewNode>> = vec![Vec::new()];
    let mut bytes = 0;
    for node in nodes {
        let part = parts.last().map_or(0, Vec::len);
        if part >= NODES_BATCH || (part > 0 && bytes + node.body.len() > MAX_REQUEST_BYTES) {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += node.body.len();
        if let Some(part) = parts.last_mut() {
            part.push(node);
        }
    }
    let (mut first, last, mut plan) = (first, parts.len() - 1, Some(plan));
    let part = |(number, nodes): (usize, Vec<NewNode>)| {
        let begin = u32::try_from(first).unwrap_or(u32::MAX);
        first += nodes.len();
        let plan = if number == last { plan.take() } else { None };
        PutFlow { id: id.clone(), token, first: begin, nodes: nodes.into(), plan, adds_to }
    };
    parts.into_iter().enumerate().map(part).collect()
}

/// The nodes, each behind those that it waits for, and those that wait for all at the end; otherwise as they were given
/// (A. B. Kahn, Topological sorting of large networks, 1962).
fn in_order<'n>(
    nodes: &'n [Node],
    known: &HashMap<String, u32>,
    graph: &Graph,
) -> Result<Vec<&'n Node>, Error> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let name = node.name();
        if known.contains_key(name) {
            return Err(Error::invalid(format!("the flow has another node {name:?} already")));
        }
        if places.insert(name, place).is_some() {
            return Err(Error::invalid(format!("node {name:?} is in the flow twice")));
        }
    }
    let mut waits = vec![0_usize; nodes.len()];
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        for (other, _) in &node.after {
            let waits_for_all = match (known.get(other), places.get(&**other)) {
                (Some(other), _) => {
                    graph.nodes.get(*other as usize).is_some_and(|node| node.after_all.is_some())
                }
                (None, Some(other)) => {
                    waits[place] += 1;
                    behind[*other].push(place);
                    nodes[*other].after_all.is_some()
                }
                (None, None) => {
                    let name = node.name();
                    return Err(Error::invalid(format!(
                        "node {name:?} is after {other:?}, which the flow has not"
                    )));
                }
            };
            if waits_for_all && node.after_all.is_none() {
                let name = node.name();
                let message = format!(
                    "node {name:?} is after {other:?}, which waits for all: they wait for each other"
                );
                return Err(Error::invalid(message));
            }
        }
    }
    let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
    for waits_for_all in [false, true] {
        let mut free: std::collections::BTreeSet<usize> = (0..nodes.len())
            .filter(|place| waits[*place] == 0 && nodes[*place].after_all.is_some() == waits_for_all)
            .collect();
        while let Some(place) = free.pop_first() {
            order.push(place);
            for next in &behind[place] {
                waits[*next] -= 1;
                if waits[*next] == 0 && nodes[*next].after_all.is_some() == waits_for_all {
                    free.insert(*next);
                }
            }
        }
    }
    if order.len() < nodes.len() {
        let stuck = (0..nodes.len()).find(|place| waits[*place] > 0).map_or("", |place| nodes[place].name());
        return Err(Error::invalid(format!(
            "node {stuck:?} is in a circle of nodes that wait for each other"
        )));
    }
    Ok(order.into_iter().map(|place| &nodes[place]).collect())
}

fn new_node(flow: &TaskId, node: &Node, own_queue: &str) -> Result<NewNode, Error> {
    let name = node.name();
    let wrong = |problem: &str| Error::invalid(format!("node {name:?}: {problem}"));
    if node.task.has_duplicate_policy() {
        return Err(wrong("on_duplicate is not for nodes: each is put in once"));
    }
    let task = node.task.checked()?;
    TaskId::parse(NewNode::task_id(flow, name).as_str())
        .map_err(|_| wrong("with the flow's id and a slash its name has more than 512 bytes"))?;
    Ok(NewNode {
        name: name.into(),
        queue: node.queue.as_deref().filter(|queue| *queue != own_queue).map(Arc::from),
        due: task.due,
        priority: task.priority,
        max_attempts: task.max_attempts,
        expires: task.expires,
        key: task.key,
        body: task.body,
    })
}

/// What the edges of a node say, as its flow shows it.
pub(crate) fn after(graph: &Graph, names: &[NodeName], node: usize) -> Vec<(String, Edge)> {
    let edges = graph.nodes.get(node).map(|node| node.after.as_slice()).unwrap_or_default();
    edges.iter().filter_map(|(other, edge)| Some((names.get(*other as usize)?.0.clone(), *edge))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::task::Task;

    fn node(name: &str, after: &[&str]) -> Node {
        after.iter().fold(Node::new(Task::new(name)), |node, other| node.after(*other))
    }

    fn add(nodes: &[Node]) -> Result<Nodes, Error> {
        let mut all = Nodes::none();
        all.add(&TaskId::stored(b"f"), nodes, "q").map(|_| all)
    }

    fn refused(nodes: &[Node]) -> String {
        add(nodes).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn nodes_come_behind_those_that_they_wait_for() {
        let last = Node { after_all: Some(Edge::End), ..node("z", &[]) };
        let nodes = add(&[last, node("c", &["b", "a"]), node("b", &["a"]), node("a", &[])]).unwrap();
        let names: Vec<&str> = nodes.names.iter().map(|name| &*name.0).collect();
        assert_eq!(names, ["a", "b", "c", "z"]);
        assert_eq!(
            nodes.graph.nodes[2].after,
            [(1, Edge::Success), (0, Edge::Success)],
            "as they were named"
        );
    }

    #[test]
    fn what_can_never_come_about_is_refused() {
        assert!(refused(&[node("a", &["b"]), node("b", &["a"])]).contains("\"a\" is in a circle"));
        assert!(refused(&[node("a", &["a"])]).contains("\"a\" is in a circle"));
        assert!(refused(&[node("a", &[]), node("a", &[])]).contains("\"a\" is in the flow twice"));
        assert!(refused(&[node("a", &["b"])]).contains("\"a\" is after \"b\", which the flow has not"));
        let all = Node { after_all: Some(Edge::Success), ..node("t", &[]) };
        assert!(refused(&[all, node("a", &["t"])]).contains("they wait for each other"));
        assert!(refused(&[node(&"x".repeat(511), &[])]).contains("more than 512 bytes"));
        let many: Vec<Node> = (0..=NODES_MAX).map(|number| node(&number.to_string(), &[])).collect();
        assert!(refused(&many).contains("at most 10000 nodes, not 10001"));
        let hundreds: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        let ones: Vec<&str> = hundreds.iter().map(String::as_str).collect();
        let mut dense: Vec<Node> = ones.iter().map(|name| node(name, &[])).collect();
        dense.extend((0..251).map(|number| node(&format!("after-{number}"), &ones)));
        assert!(refused(&dense).contains("name 100000 others in all, not 100400"));
        let last = |number: usize| Node { after_all: Some(Edge::End), ..node(&number.to_string(), &[]) };
        assert!(refused(&(0..101).map(last).collect::<Vec<_>>()).contains("at most 100 nodes"));
        let keep = Node::new(Task::new("a").on_duplicate(crate::OnDuplicate::Replace));
        assert!(refused(&[keep]).contains("on_duplicate is not for nodes"));
    }

    #[test]
    fn nodes_that_are_added_may_come_behind_older_ones() {
        let mut nodes =
            add(&[node("a", &[]), Node { after_all: Some(Edge::Success), ..node("t", &[]) }]).unwrap();
        let flow = TaskId::stored(b"f");
        nodes.add(&flow, &[node("c", &["b"]), node("b", &["a"]).queue("mails")], "q").unwrap();
        assert_eq!(nodes.graph.nodes[2].after, [(0, Edge::Success)]);
        assert_eq!(nodes.names[2], NodeName("b".into(), Some("mails".into())));
        assert!(nodes.add(&flow, &[node("a", &[])], "q").is_err());
        assert!(nodes.add(&flow, &[node("d", &["t"])], "q").is_err());
    }

    #[test]
    fn a_node_that_is_added_again_is_there_if_it_says_the_same() {
        let mut nodes = add(&[node("a", &[])]).unwrap();
        nodes.add(&TaskId::stored(b"f"), &[node("b", &["a"]).queue("mails")], "q").unwrap();
        assert!(nodes.has(&node("b", &["a"]).queue("mails"), "q"));
        assert!(nodes.has(&node("a", &[]).queue("q"), "q"));
        for other in [node("b", &["a"]), node("b", &[]).queue("mails"), node("c", &["a"])] {
            assert!(!nodes.has(&other, "q"), "{other:?}");
        }
    }

    #[test]
    fn a_large_flow_comes_in_parts_of_which_the_last_has_the_plan() {
        let tasks: Vec<Node> = (0..2_500).map(|number| node(&number.to_string(), &[])).collect();
        let mut nodes = Nodes::none();
        let flow = TaskId::stored(b"f");
        let new = nodes.add(&flow, &tasks, "q").unwrap();
        let parts = parts(&flow, 1, 0, new, nodes.stored(), None);
        let sizes: Vec<_> =
            parts.iter().map(|part| (part.first, part.nodes.len(), part.plan.is_some())).collect();
        assert_eq!(sizes, [(0, 1_000, false), (1_000, 1_000, false), (2_000, 500, true)]);
        let empty = super::parts(&flow, 1, 0, Vec::new(), nodes.stored(), None);
        assert!(empty.len() == 1 && empty[0].plan.is_some());
    }
}
