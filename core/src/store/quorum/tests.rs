//! What is refused before anything is sent.

use std::sync::Arc;

use super::*;
use crate::base::clock::ManualClock;
use crate::base::name::Prefixes;
use crate::base::token::Token;
use crate::protocol::{Acquire, Holder, QueueRequest, QueueVerb};

use crate::store::redis::life::Lives;
use member::tests::{Fake, leaves_and_returns};

/// A quorum that nobody could reach.
fn nowhere(rejoin_after: Duration) -> QuorumStore {
    let place =
        QuorumPlace { servers: Vec::new(), tls: false, node_timeout: Duration::from_secs(1), rejoin_after };
    QuorumStore::of(Vec::new(), &place, Clock::System)
}

fn name(kind: LockKind) -> LockName {
    Prefixes::parse("Lock:", "Queue:").unwrap().name_of_kind(kind, "a").unwrap()
}

fn acquire(kind: LockKind, ttl: Duration) -> Request {
    Request::Acquire(Acquire {
        name: name(kind),
        permits: None,
        token: Token::from_bits(1),
        ttl,
        min_fence: Fence::NONE,
        waiter: None,
        patience: None,
        owner: Arc::from(""),
        adopt: None,
        early: 0.0,
        looks: false,
    })
}

fn refusal(store: &QuorumStore, request: &Request) -> Option<FailureKind> {
    store.vote(request, Moment::FAR).err().map(|failure| failure.kind)
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

/// While a request waits for its answer, the server is found silent by another, and comes back.
#[test]
fn an_answer_that_was_given_up_before_a_server_came_back_is_stale() {
    let fakes: Vec<_> = (0..3).map(|_| Arc::new(Fake::default())).collect();
    let zero = Duration::ZERO;
    let clock = || Clock::Manual(ManualClock::new());
    let lives = Lives::new(vec!["here".to_owned(); 3], zero, clock());
    let stores = fakes.iter().enumerate();
    let stores =
        stores.map(|(number, fake)| (Arc::clone(fake) as Arc<dyn Store>, lives.life(number))).collect();
    let place = QuorumPlace {
        servers: Vec::new(),
        tls: false,
        node_timeout: Duration::from_secs(1),
        rejoin_after: zero,
    };
    let store = QuorumStore::of(stores, &place, clock());
    let look = || Request::Holder(Holder { name: name(LockKind::Exclusive) });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let asks: [&dyn Fn(); 3] = [
        &|| drop(store.perform(&look(), Moment::FAR)),
        &|| store.perform_all(&[look()], Moment::FAR, &mut |_, _| ()),
        &|| drop(runtime.block_on(store.perform_async(&look(), Moment::FAR))),
    ];
    for (number, ask) in asks.into_iter().enumerate() {
        let (fake, member) = (Arc::clone(&fakes[0]), Arc::clone(&store.members[0]));
        fakes[0].goes_down(true);
        fakes[0].meanwhile(move || {
            fake.goes_down(false);
            leaves_and_returns(&member);
        });
        ask();
        assert!(store.members[0].absence().is_none(), "way {number}");
    }
}
