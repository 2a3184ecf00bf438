//! What each node of a flow waits for, and how stores keep that.

use serde::{Deserialize, Serialize};

/// What a node needs of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// That it was done.
    Success,
    /// That it ended, whatever came of it.
    End,
    /// That it ended, and was not done. Of several such edges one is enough.
    Failure,
}

impl Edge {
    const ALL: [(u32, Self); 3] = [(1, Self::Success), (2, Self::End), (3, Self::Failure)];

    /// How a node that needs this of all others was added.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "then",
            Self::End => "finally",
            Self::Failure => "failed",
        }
    }

    fn number(edge: Option<Self>) -> u32 {
        Self::ALL.iter().find(|row| Some(row.1) == edge).map_or(0, |row| row.0)
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().find(|row| row.0 == number).map(|row| row.1)
    }
}

/// What one node waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeGraph {
    /// Other nodes, by number, in the order in which they were named.
    pub(crate) after: Vec<(u32, Edge)>,
    /// Every node that has none of these, also those that are added later.
    pub(crate) after_all: Option<Edge>,
    /// Whether its task belongs to another queue.
    pub(crate) elsewhere: bool,
}

/// What all nodes wait for. A node comes after those that it waits for, but for those of `after_all`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<NodeGraph>,
}

impl Graph {
    /// As bytes: numbers of seven bits each, the last part first (LEB128). Of each node: how many edges, in four, with what it
    /// needs of all, in two with whether it is elsewhere; then of each edge how far back the node is, in four, with the kind.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let count = u32::try_from(node.after.len()).unwrap_or(u32::MAX >> 3);
            push(&mut bytes, count << 3 | Edge::number(node.after_all) << 1 | u32::from(node.elsewhere));
            for (other, edge) in &node.after {
                let back = (number as u32).wrapping_sub(*other);
                push(&mut bytes, back << 2 | Edge::number(Some(*edge)));
            }
        }
        bytes
    }

    /// What [`Graph::write`] wrote; `None` if it is nothing of the kind.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut nodes: Vec<NodeGraph> = Vec::new();
        while !bytes.is_empty() {
            let head = pull(&mut bytes)?;
            let after_all = Edge::from_number(head >> 1 & 3);
            let mut node = NodeGraph { after: Vec::new(), after_all, elsewhere: head & 1 == 1 };
            for _ in 0..head >> 3 {
                let edge = pull(&mut bytes)?;
                let other = u32::try_from(nodes.len()).ok()?.checked_sub(edge >> 2)?;
                node.after.push((other, Edge::from_number(edge & 3)?));
            }
            nodes.push(node);
        }
        Some(Self { nodes })
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A node's name, and that of its queue if it is in another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeName(
    pub(crate) String,
    #[serde(skip_serializing_if = "Option::is_none", default)] pub(crate) Option<String>,
);

pub(crate) fn write_names(names: &[NodeName]) -> Vec<u8> {
    serde_json::to_vec(names).unwrap_or_default()
}

pub(crate) fn read_names(bytes: &[u8]) -> Option<Vec<NodeName>> {
    serde_json::from_slice(bytes).ok()
}
