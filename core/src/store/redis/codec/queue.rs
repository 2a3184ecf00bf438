//! Requests about queues, and their replies.

use redis::{Cmd, Value};

use crate::store::redis::script::{SCRIPTS, Script};
use crate::verbs::{QueueReply, QueueRequest, QueueVerb};

/// The script of a verb.
pub(super) fn script(_verb: &QueueVerb) -> &'static Script {
    &SCRIPTS.holder
}

/// Keys and arguments.
pub(super) fn encode_arguments(_command: &mut Cmd, _request: &QueueRequest) {}

/// The reply, if it makes sense.
pub(super) fn decode(_verb: &QueueVerb, _value: &Value) -> Option<QueueReply> {
    None
}
