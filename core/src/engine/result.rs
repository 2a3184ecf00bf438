//! What became of a task.

use crate::base::name::TaskId;
use crate::engine::ask::Question;
use crate::protocol::{Failure, QueueReply, QueueVerb, ResultOf, ResultReply, Version, Waiter};

/// The question: see [`AskMachine`](crate::engine::ask::AskMachine).
#[derive(Clone, Debug)]
pub struct WhatBecame {
    /// Of which task.
    pub id: TaskId,
    /// Of that enqueue or a later one.
    pub version: Version,
}

impl Question for WhatBecame {
    type Answer = ResultReply;

    const VERB: &'static str = "result";

    fn verb(&self, waiter: Option<Waiter>) -> QueueVerb {
        QueueVerb::Result(ResultOf { id: self.id.clone(), version: self.version, waiter })
    }

    fn read(&mut self, reply: QueueReply) -> Option<Result<Option<ResultReply>, Failure>> {
        match reply {
            QueueReply::Result(ResultReply::Pending) => Some(Ok(None)),
            QueueReply::Result(reply) => Some(Ok(Some(reply))),
            _ => None,
        }
    }

    fn nothing(&self) -> ResultReply {
        ResultReply::Pending
    }

    fn told(answer: &ResultReply) -> &'static str {
        match answer {
            ResultReply::Done { .. } => "done",
            ResultReply::Pending => "pending",
            ResultReply::Dead { .. } => "dead",
            ResultReply::Gone => "gone",
        }
    }
}
