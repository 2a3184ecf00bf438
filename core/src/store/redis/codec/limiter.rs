//! The verbs of limiters: requests to scripts and arguments.

use redis::Cmd;

use crate::protocol::{GiveBack, LimitKind, Take};
use crate::store::redis::script::Verb;

pub(super) fn take_verb(kind: LimitKind) -> Verb {
    match kind {
        LimitKind::Gcra => Verb::GcraTake,
        LimitKind::FixedWindow => Verb::FixedTake,
        LimitKind::SlidingWindow => Verb::SlidingTake,
    }
}

pub(super) fn give_back_verb(kind: LimitKind) -> Verb {
    match kind {
        LimitKind::Gcra => Verb::GcraGiveBack,
        LimitKind::FixedWindow => Verb::FixedGiveBack,
        LimitKind::SlidingWindow => Verb::SlidingGiveBack,
    }
}

pub(super) fn encode_take(command: &mut Cmd, take: &Take) {
    let Take { rule, count, wait_most, token, .. } = take;
    match rule.kind {
        LimitKind::Gcra => command.arg(rule.cost(*count)).arg(rule.slack(*count)),
        LimitKind::FixedWindow | LimitKind::SlidingWindow => command.arg(*count).arg(rule.most).arg(rule.per),
    };
    // A try has neither: each argument costs the server time.
    if let Some(token) = token {
        command.arg(u64::try_from(wait_most.as_micros()).unwrap_or(u64::MAX)).arg(token.as_str());
    }
}

pub(super) fn encode_give_back(command: &mut Cmd, give_back: &GiveBack) {
    let GiveBack { rule, count, token, .. } = give_back;
    command.arg(token.as_str());
    match rule.kind {
        LimitKind::Gcra => command.arg(rule.cost(*count)),
        LimitKind::FixedWindow => command.arg(*count).arg(rule.per),
        LimitKind::SlidingWindow => command,
    };
}
