//! A picture of a flow: what comes after what, from left to right. Nodes that wait for the same, and for which the same wait,
//! are one box if they are many: a thousand pages that are joined are two boxes and a line.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use stanchion::{NodeInfo, NodeState};

use crate::text::shortened;
use crate::web::html::{number, shown};

/// Boxes of a picture, at most.
const BOXES: usize = 60;
/// More nodes than this that are alike are one box.
const ALIKE: usize = 6;
/// Nodes of which a picture is made, at most.
const NODES: usize = 2_000;
/// Of a box and between boxes, in pixels.
const WIDE: usize = 150;
const HIGH: usize = 28;
const ACROSS: usize = 210;
const DOWN: usize = 40;
/// Characters of a name.
const NAME: usize = 18;

/// One node, or several that are alike.
struct Group<'a> {
    nodes: Vec<&'a NodeInfo>,
    /// The groups that come before it.
    after: BTreeSet<usize>,
    /// How many groups come one after the other before it.
    layer: usize,
}

/// The picture; none if it would be too large to be of use.
pub fn graph(nodes: &[NodeInfo]) -> Option<Markup> {
    if nodes.len() > NODES {
        return None;
    }
    let mut groups = grouped(nodes);
    if groups.len() > BOXES {
        return None;
    }
    put_in_layers(&mut groups);
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let places: Vec<(usize, usize)> = groups
        .iter()
        .map(|group| {
            let row = rows.entry(group.layer).or_default();
            *row += 1;
            (group.layer * ACROSS, (*row - 1) * DOWN)
        })
        .collect();
    let wide = places.iter().map(|place| place.0).max().unwrap_or(0) + WIDE + 2;
    let high = places.iter().map(|place| place.1).max().unwrap_or(0) + HIGH + 2;
    let said = format!("A picture of {} nodes and what comes after what, as the table below", nodes.len());
    Some(html! {
        div.scroll tabindex="0" role="region" aria-label="A picture" {
            svg.graph width=(wide) height=(high) viewBox=(format!("-1 -1 {wide} {high}")) role="img" aria-label=(said) {
                @for (group, to) in groups.iter().zip(&places) {
                    @for before in &group.after { path.edge d=(edge(places[*before], *to)) {} }
                }
                @for (group, place) in groups.iter().zip(&places) { (drawn(group, *place)) }
            }
        }
    })
}

fn drawn(group: &Group<'_>, (x, y): (usize, usize)) -> Markup {
    let name = shown(&shortened(&group.nodes[0].name, NAME));
    let name = match group.nodes.len() {
        1 => name,
        several => format!("{} like {name}", number(several as u64)),
    };
    html! {
        g {
            title { (told(group)) }
            rect class={ "node " (colour(group)) } x=(x) y=(y) width=(WIDE) height=(HIGH) rx="6" {}
            text x=(x + 8) y=(y + HIGH - 9) { (shortened(&name, NAME + 4)) }
        }
    }
}

fn edge((from_x, from_y): (usize, usize), (to_x, to_y): (usize, usize)) -> String {
    let (from_x, from_y, to_y) = (from_x + WIDE, from_y + HIGH / 2, to_y + HIGH / 2);
    let middle = usize::midpoint(from_x, to_x);
    format!("M{from_x} {from_y} C{middle} {from_y} {middle} {to_y} {to_x} {to_y}")
}

/// How many of its nodes are in which state.
fn told(group: &Group<'_>) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for node in &group.nodes {
        *counts.entry(node.state.name()).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{} {state}", number(*count))).collect();
    format!("{}: {}", shown(&group.nodes[0].name), counts.join(", "))
}

/// That of the worst state in it.
fn colour(group: &Group<'_>) -> &'static str {
    let has = |state| group.nodes.iter().any(|node| node.state == state);
    if has(NodeState::Dead) {
        "bad"
    } else if has(NodeState::Put) || has(NodeState::Ending) {
        "runs"
    } else if group.nodes.iter().all(|node| node.state == NodeState::Done) {
        "good"
    } else {
        ""
    }
}

type Names<'a> = BTreeSet<&'a str>;

fn named(node: &NodeInfo) -> impl Iterator<Item = &String> {
    node.after.iter().chain(&node.after_end).chain(&node.after_failure)
}

/// What each node comes after. What comes after all comes after those that nothing else comes after.
fn before(nodes: &[NodeInfo]) -> BTreeMap<&str, Names<'_>> {
    let waited_for: Names<'_> = nodes.iter().flat_map(named).map(String::as_str).collect();
    let is_end = |node: &&NodeInfo| node.after_all.is_none() && !waited_for.contains(node.name.as_str());
    let ends: Names<'_> = nodes.iter().filter(is_end).map(|node| node.name.as_str()).collect();
    let of = |node| {
        let mut names: Names<'_> = named(node).map(String::as_str).collect();
        if node.after_all.is_some() {
            names.extend(&ends);
        }
        (node.name.as_str(), names)
    };
    nodes.iter().map(of).collect()
}

fn grouped(nodes: &[NodeInfo]) -> Vec<Group<'_>> {
    let before = before(nodes);
    let mut behind: BTreeMap<&str, Names<'_>> = BTreeMap::new();
    for (name, others) in &before {
        for other in others {
            behind.entry(other).or_default().insert(name);
        }
    }
    let mut alike: BTreeMap<_, Vec<&NodeInfo>> = BTreeMap::new();
    for node in nodes {
        alike.entry((&before[&*node.name], behind.get(&*node.name))).or_default().push(node);
    }
    let boxes: Vec<&[&NodeInfo]> = alike
        .values()
        .flat_map(|nodes| nodes.chunks(if nodes.len() > ALIKE { nodes.len() } else { 1 }))
        .collect();
    let number: BTreeMap<&str, usize> = (0..)
        .zip(&boxes)
        .flat_map(|(number, nodes)| nodes.iter().map(move |node| (&*node.name, number)))
        .collect();
    let after = |nodes: &[&NodeInfo]| {
        before[&*nodes[0].name].iter().filter_map(|name| number.get(name).copied()).collect()
    };
    boxes.iter().map(|nodes| Group { after: after(nodes), nodes: nodes.to_vec(), layer: 0 }).collect()
}

/// Each behind all that it comes after. There is no circle in a flow; if there were, it would stay where it is.
fn put_in_layers(groups: &mut [Group<'_>]) {
    for _ in 0..groups.len() {
        let mut is_done = true;
        for number in 0..groups.len() {
            let layer = groups[number].after.iter().map(|before| groups[*before].layer + 1).max();
            if let Some(layer) = layer.filter(|layer| *layer > groups[number].layer) {
                groups[number].layer = layer;
                is_done = false;
            }
        }
        if is_done {
            return;
        }
    }
}
