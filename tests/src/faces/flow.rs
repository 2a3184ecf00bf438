//! What queues and claims of both faces do with flows.

use stanchion::{Error, Flow, FlowInfo, FlowInput, FlowPage, Node};

use super::{AnyClaim, AnyQueue, runtime};

impl AnyQueue {
    /// As `Queue::enqueue_flow`.
    pub fn enqueue_flow(&self, flow: Flow) -> Result<bool, Error> {
        either!(Self, self, queue => queue.enqueue_flow(flow))
    }

    /// As `Queue::add_to_flow`.
    pub fn add_to_flow(&self, id: &str, nodes: Vec<Node>) -> Result<bool, Error> {
        either!(Self, self, queue => queue.add_to_flow(id, nodes))
    }

    /// As `Queue::get_flow`.
    pub fn get_flow(&self, id: &str) -> Result<Option<FlowInfo>, Error> {
        either!(Self, self, queue => queue.get_flow(id))
    }

    /// As `Queue::list_flows`.
    pub fn list_flows(&self, from: Option<&str>, max: usize) -> Result<FlowPage, Error> {
        either!(Self, self, queue => queue.list_flows(from, max))
    }

    /// As `Queue::cancel_flow`.
    pub fn cancel_flow(&self, id: &str) -> Result<bool, Error> {
        either!(Self, self, queue => queue.cancel_flow(id))
    }

    /// As `Queue::retry_flow`.
    pub fn retry_flow(&self, id: &str) -> Result<bool, Error> {
        either!(Self, self, queue => queue.retry_flow(id))
    }
}

impl AnyClaim {
    /// As `Claim::flow`.
    pub fn flow(&self) -> Option<&str> {
        plain!(Self, self, claim => claim.flow())
    }

    /// As `Claim::inputs`.
    pub fn inputs(&self) -> Result<Vec<FlowInput>, Error> {
        either!(Self, self, claim => claim.inputs())
    }
}
