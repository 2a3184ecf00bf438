//! What a client knows of a cluster: its nodes, with connections to them, and which slot is whose.

use std::sync::Arc;

use crate::protocol::Failure;
use crate::store::redis::cluster::layout::Layout;
use crate::store::redis::cluster::slot;
use crate::store::redis::connector::Connector;
use crate::store::redis::node::Node;
use crate::store::redis::server::Server;
use crate::store::url::Endpoint;

/// The owner of a slot that nobody serves.
const NOBODY: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(super) struct Map {
    /// Masters, and nodes that a request was sent to since the map was drawn.
    nodes: Vec<Arc<Node>>,
    /// The index in `nodes` of each slot's owner; empty if nothing is known.
    owners: Vec<u16>,
    pub(super) replicas: Vec<Endpoint>,
}

impl Map {
    pub(super) fn is_blank(&self) -> bool {
        self.owners.is_empty()
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let index = *self.owners.get(usize::from(slot))?;
        self.nodes.get(usize::from(index)).cloned()
    }

    /// Those that serve slots, in the order of their first one.
    pub(super) fn masters(&self) -> Vec<Arc<Node>> {
        let mut seen = vec![false; self.nodes.len()];
        let mut masters = Vec::new();
        for owner in &self.owners {
            let index = usize::from(*owner);
            if seen.get(index) == Some(&false) {
                seen[index] = true;
                masters.push(Arc::clone(&self.nodes[index]));
            }
        }
        masters
    }

    /// Notes that a slot is served there.
    pub(super) fn moved(
        &mut self,
        slot: u16,
        endpoint: &Endpoint,
        template: &Server,
    ) -> Result<Arc<Node>, Failure> {
        let index = self.index(endpoint, template)?;
        if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
            *owner = index;
        }
        Ok(Arc::clone(&self.nodes[usize::from(index)]))
    }

    /// Draws the map anew. Nodes that serve slots still keep their connections.
    pub(super) fn redraw(&mut self, layout: Layout, template: &Server) -> Result<(), Failure> {
        let mut fresh = Self { nodes: Vec::new(), owners: Vec::new(), replicas: layout.replicas };
        fresh.owners.resize(usize::from(slot::COUNT), NOBODY);
        for (first, last, master) in layout.ranges {
            if let Some(known) = self.known(&master).filter(|_| fresh.known(&master).is_none()) {
                fresh.nodes.push(Arc::clone(&self.nodes[known]));
            }
            let index = fresh.index(&master, template)?;
            fresh.owners[usize::from(first)..=usize::from(last)].fill(index);
        }
        *self = fresh;
        Ok(())
    }

    fn known(&self, endpoint: &Endpoint) -> Option<usize> {
        self.nodes.iter().position(|node| node.endpoint.as_ref() == Some(endpoint))
    }

    fn index(&mut self, endpoint: &Endpoint, template: &Server) -> Result<u16, Failure> {
        let index = match self.known(endpoint) {
            Some(index) => index,
            None => {
                self.nodes.push(Arc::new(node(endpoint, template)?));
                self.nodes.len() - 1
            }
        };
        // There are fewer nodes than slots, and one more for each that was moved.
        Ok(u16::try_from(index).unwrap_or(NOBODY))
    }
}

pub(super) fn node(endpoint: &Endpoint, template: &Server) -> Result<Node, Failure> {
    Ok(Node::new(Connector::fixed(template.at(endpoint)?), Some(endpoint.clone())))
}
