//! Flows: what a queue and a claim do with them.

use super::claim::Claim;
use super::face::both;
use super::queue::{Queue, ask};
use crate::base::error::{Error, ErrorKind};
use crate::protocol::{NodeEvent, PutFlowReply};
use crate::queue::flow::{Flow, Node};
use crate::queue::flow_calls::{Inputs, flow_at_home, home_of};
use crate::queue::flow_info::{FlowInfo, FlowInput, FlowPage};

#[both]
impl Queue {
    /// Puts a flow in, whole; whether there was none of its id: one that is there stays as it is. It is kept for 7 days after its
    /// end, and of a queue the last 1,000 that have ended are. Its tasks come into their queues although those may be at their limit.
    ///
    /// # Errors
    /// `QueueFull` if the queue has a limit and is at it; `StoreUnavailable` also while another call is putting in a flow of this id;
    /// `InvalidArgument` for a bad id, task or node, for nodes that wait for each
    /// other, or for too many: nothing is sent then; otherwise as [`Queue::enqueue`].
    pub async fn enqueue_flow(&self, flow: Flow) -> Result<bool, Error> {
        for part in self.calls.flow_parts(&flow)? {
            match ask(self.calls.put_flow(part)?).await? {
                PutFlowReply::Put => {}
                PutFlowReply::Full => return Err(self.calls.flow_full(&flow.id)),
                PutFlowReply::Absent => return Err(self.calls.flow_in_pieces(&flow.id)),
                PutFlowReply::Stale => return Err(self.calls.flow_is_coming(&flow.id)),
                PutFlowReply::Exists => return Ok(false),
            }
        }
        self.step_flows().await;
        Ok(true)
    }

    /// Adds nodes to a flow that runs, 1,000 at most and 4 MiB of payloads; whether it does: `false` if there is none, or it has
    /// ended. As long as the caller's task is a node of it, it runs. The new ones may come after nodes that are there, and those
    /// that wait for all wait for these, too. A node that is there, in the same queue and after the same ones, stays as it is: a task
    /// that adds nodes may run again.
    ///
    /// # Errors
    /// As [`Queue::enqueue_flow`].
    pub async fn add_to_flow(&self, id: &str, nodes: Vec<Node>) -> Result<bool, Error> {
        loop {
            let Some(found) = ask(self.calls.find_flow("add_to_flow", id)?).await? else { return Ok(false) };
            if found.ended > 0 {
                return Ok(false);
            }
            let Some(put) = self.calls.added(&found, &nodes)? else { return Ok(true) };
            match ask(self.calls.put_flow(put)?).await? {
                PutFlowReply::Put => break,
                // It has gone on meanwhile.
                PutFlowReply::Stale => {}
                PutFlowReply::Absent | PutFlowReply::Exists | PutFlowReply::Full => return Ok(false),
            }
        }
        self.step_flows().await;
        Ok(true)
    }

    /// A flow with all its nodes, if it is known.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn get_flow(&self, id: &str) -> Result<Option<FlowInfo>, Error> {
        let found = ask(self.calls.find_flow("get_flow", id)?).await?;
        found.map(|found| self.calls.flow_info(&found)).transpose()
    }

    /// The flows of the queue without their nodes: those that run, the latest first, then those that have ended; a page of at most
    /// `max` at a time (1 to 1,000, and never more than 100). `from`: what the page before gave as its `next`.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn list_flows(&self, from: Option<&str>, max: usize) -> Result<FlowPage, Error> {
        ask(self.calls.list_flows(from, max)?).await
    }

    /// Cancels a flow; whether there is one that runs. Tasks that wait go, those that run are told (as by [`Queue::cancel`]), and of
    /// the nodes that are not in their queues only those still run that wait for nothing but the end of others (`finally`). Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn cancel_flow(&self, id: &str) -> Result<bool, Error> {
        let Some(found) = ask(self.calls.find_flow("cancel_flow", id)?).await? else { return Ok(false) };
        if found.ended > 0 {
            return Ok(false);
        }
        ask(self.calls.post_to_flow(found.id, NodeEvent::Cancel)?).await?;
        self.step_flows().await;
        Ok(true)
    }

    /// Tries again what did not succeed in a flow: nodes that are dead, cancelled or skipped, with attempts starting again; whether
    /// there is such a flow. Those that succeeded do not run again. Sent once.
    ///
    /// # Errors
    /// As [`Queue::pop`].
    pub async fn retry_flow(&self, id: &str) -> Result<bool, Error> {
        let Some(found) = ask(self.calls.find_flow("retry_flow", id)?).await? else { return Ok(false) };
        ask(self.calls.post_to_flow(found.id, NodeEvent::Retry)?).await?;
        self.step_flows().await;
        Ok(true)
    }

    /// Lets flows go on. If it fails, whoever claims does it.
    async fn step_flows(&self) {
        let Ok(mut stepping) = self.calls.stepping() else { return };
        while let Some(round) = stepping.next() {
            match ask(round).await {
                Ok(reply) => stepping.rounds.replied(reply),
                Err(error) if error.kind() == ErrorKind::WrongType => stepping.rounds.refused(),
                Err(_) => return,
            }
        }
    }
}

#[both]
impl Claim {
    /// The id of the flow that the task is of, if it is of one.
    pub fn flow(&self) -> Option<&str> {
        self.delivery().task.node.as_ref().map(|of| of.flow.as_str())
    }

    /// What has become of the nodes that this one comes after, with the results that they gave ([`Claim::ack_with`]), in the order in
    /// which they were named; if it comes after all, of all. Of a flow 64 MiB of results are kept. Empty if the task is of no flow.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn inputs(&self) -> Result<Vec<FlowInput>, Error> {
        let delivery = self.delivery();
        let Some(of) = &delivery.task.node else { return Ok(Vec::new()) };
        let (live, home) = (&delivery.kept.live, home_of(&delivery.queue, of));
        let wrong = |error| delivery.during("inputs", error);
        let found = ask(flow_at_home(live, &home, of)).await.map_err(wrong)?;
        let Some(mut inputs) = found.and_then(|found| Inputs::new(&found, of.node)) else {
            return Ok(Vec::new());
        };
        while let Some(next) = inputs.next(live, &home) {
            let results = ask(next).await.map_err(wrong)?;
            inputs.read(results);
        }
        Ok(inputs.found())
    }
}
