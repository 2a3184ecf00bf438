//! Who works on a queue.

use std::time::{Duration, SystemTime};

use crate::protocol::{ConsumerReply, Receipt};
use crate::session::options::Owner;

/// A process that works on a queue, as the store lists it. Out of date as soon as it is read: for people and
/// dashboards, not for decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumer {
    /// Its client's label; empty if it has none.
    pub label: String,
    /// Its host; empty if unknown.
    pub host: String,
    /// Its process id; zero if unknown.
    pub pid: u32,
    /// How many of its calls wait for a task.
    pub waiters: u64,
    /// How many tasks it has claimed.
    pub claims: u64,
}

/// Who claimed a task last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimedBy {
    /// Its client's label; empty if it has none.
    pub label: String,
    /// Its host; empty if unknown.
    pub host: String,
    /// Its process id; zero if unknown.
    pub pid: u32,
    /// When, by the store's wall clock; `None` if the delivery was settled and the task lives.
    pub since: Option<SystemTime>,
}

impl From<ConsumerReply> for Consumer {
    fn from(reply: ConsumerReply) -> Self {
        let Owner { pid, host, label } = Owner::parse(&reply.consumer);
        Self { label, host, pid, waiters: reply.waiters, claims: reply.claims }
    }
}

impl ClaimedBy {
    /// `receipt` is that of the delivery, which the store numbers by its clock's microseconds.
    pub(crate) fn parse(consumer: &str, receipt: Receipt) -> Option<Self> {
        if consumer.is_empty() {
            return None;
        }
        let Owner { pid, host, label } = Owner::parse(consumer);
        let since =
            (receipt != Receipt::NONE).then(|| SystemTime::UNIX_EPOCH + Duration::from_micros(receipt.get()));
        Some(Self { label, host, pid, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_none_and_a_settled_delivery_has_no_time() {
        assert_eq!(ClaimedBy::parse("", Receipt::new(5)), None);
        let known = ClaimedBy::parse("12 host a label", Receipt::new(1_500_000)).unwrap();
        assert_eq!((&*known.label, &*known.host, known.pid), ("a label", "host", 12));
        assert_eq!(known.since, Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_500)));
        assert_eq!(ClaimedBy::parse("12 host ", Receipt::NONE).unwrap().since, None);
    }
}
