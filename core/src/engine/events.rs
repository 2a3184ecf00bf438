//! What happens to the tasks of a queue.

use crate::base::error::ErrorKind;
use crate::engine::ask::Question;
use crate::protocol::{
    EventRecord, Events, EventsReply, Failure, FailureKind, QueueReply, QueueVerb, Waiter,
};

/// The question: see [`AskMachine`](crate::engine::ask::AskMachine).
#[derive(Clone, Copy, Debug)]
pub struct WhatHappens {
    /// After the event with this number: 0 from the oldest that is kept; `None` from now on.
    pub after: Option<u64>,
}

/// The first events after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happenings {
    /// In order.
    pub events: Vec<EventRecord>,
    /// Whether some that were between are not kept any more.
    pub missed: bool,
    /// Ask for what comes after this.
    pub cursor: u64,
}

impl Question for WhatHappens {
    type Answer = Happenings;

    const VERB: &'static str = "events";

    fn verb(&self, waiter: Option<Waiter>) -> QueueVerb {
        QueueVerb::Events(Events { after: self.after, waiter })
    }

    fn read(&mut self, reply: QueueReply) -> Option<Result<Option<Happenings>, Failure>> {
        match reply {
            QueueReply::Events(EventsReply::Found { events, last }) => {
                let after = *self.after.get_or_insert(last);
                Some(Ok(found(after, events)))
            }
            QueueReply::Events(EventsReply::Off) => {
                let kind = FailureKind::Final(ErrorKind::Unsupported);
                Some(Err(Failure::new(
                    kind,
                    "the queue keeps no events; set how many it is to keep: events of configure",
                )))
            }
            _ => None,
        }
    }

    fn nothing(&self) -> Happenings {
        Happenings { events: Vec::new(), missed: false, cursor: self.after.unwrap_or_default() }
    }

    fn told(answer: &Happenings) -> &'static str {
        if answer.events.is_empty() { "nothing" } else { "found" }
    }
}

fn found(after: u64, events: Vec<EventRecord>) -> Option<Happenings> {
    let (first, last) = (events.first()?.number, events.last()?.number);
    Some(Happenings { missed: after > 0 && first != after.saturating_add(1), cursor: last, events })
}
