//! What is refused before anything is sent.

use std::sync::Arc;

use super::*;
use crate::name::Prefixes;
use crate::token::Token;
use crate::verbs::{Acquire, QueueRequest, QueueVerb};

/// A quorum that nobody could reach.
fn nowhere(rejoin_after: Duration) -> QuorumStore {
    let place =
        QuorumPlace { servers: Vec::new(), tls: false, node_timeout: Duration::from_secs(1), rejoin_after };
    QuorumStore::of(Vec::new(), &place, Clock::System)
}

fn acquire(kind: LockKind, ttl: Duration) -> Request {
    Request::Acquire(Acquire {
        name: Prefixes::parse("Lock:", "Queue:").unwrap().name_of_kind(kind, "a").unwrap(),
        permits: None,
        token: Token::from_bits(1),
        ttl,
        min_fence: 0,
        waiter: None,
        patience: None,
        owner: Arc::from(""),
        adopt: None,
        early: 0.0,
    })
}

fn refusal(store: &QuorumStore, request: &Request) -> Option<FailureKind> {
    store.vote(request).err().map(|failure| failure.kind)
}

#[test]
fn only_exclusive_locks_are_voted_on() {
    let store = nowhere(Duration::ZERO);
    let queue = Prefixes::parse("Lock:", "Queue:").unwrap().queue_name("a").unwrap();
    let unsupported = Some(FailureKind::Final(ErrorKind::Unsupported));
    let look = Request::Queue(QueueRequest { queue, verb: QueueVerb::Stats });
    assert_eq!(refusal(&store, &look), unsupported);
    for kind in LockKind::ALL {
        let refused = (kind != LockKind::Exclusive).then_some(unsupported).flatten();
        assert_eq!(refusal(&store, &acquire(kind, Duration::from_secs(1))), refused, "{kind:?}");
    }
}

#[test]
fn a_lease_ends_before_a_server_that_forgot_it_votes_again() {
    let store = nowhere(Duration::from_secs(60));
    assert_eq!(refusal(&store, &acquire(LockKind::Exclusive, Duration::from_secs(60))), None);
    let invalid = Some(FailureKind::Final(ErrorKind::InvalidArgument));
    assert_eq!(refusal(&store, &acquire(LockKind::Exclusive, Duration::from_millis(60_001))), invalid);
    assert_eq!(
        refusal(&nowhere(Duration::ZERO), &acquire(LockKind::Exclusive, Duration::from_secs(9_999))),
        None
    );
}
