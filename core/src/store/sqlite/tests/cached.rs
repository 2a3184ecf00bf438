//! Cached values: what is SQLite's own.

use std::time::Duration;

use super::{SECOND, Scratch, Stranger, acquire_of, open_file, soon, token, waiter};
use crate::api::internals::name_of_kind;
use crate::base::clock::Clock;
use crate::base::name::LockKind;
use crate::protocol::{Acquire, AcquireReply, Reply, Request, StoreValue, StoreValueReply};
use crate::store::Store;

fn acquire(number: u64) -> Acquire {
    Acquire { name: name_of_kind(LockKind::Cached, "a").unwrap(), ..acquire_of("a", number) }
}

fn is_value(reply: &Reply) -> bool {
    matches!(reply, Reply::Acquire(AcquireReply::Cached(value)) if value == b"v")
}

#[test]
fn a_waiter_that_was_woken_and_is_gone_makes_no_hit_wait_for_a_writer() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let Reply::Acquire(AcquireReply::Granted { fence, .. }) = store.ask(Request::Acquire(acquire(1))) else {
        panic!("it was not granted")
    };
    for number in [2, 3] {
        let waiting = store.ask(Request::Acquire(Acquire { waiter: waiter(number), ..acquire(number) }));
        assert!(matches!(waiting, Reply::Acquire(AcquireReply::Waiting(_))), "{waiting:?}");
    }
    let stored = store.ask(Request::StoreValue(StoreValue {
        name: acquire(1).name,
        token: token(1),
        fence,
        value: b"v"[..].into(),
        ttl: 60 * SECOND,
        stale: Duration::ZERO,
        took: Duration::ZERO,
        acquire_resent: false,
    }));
    assert_eq!(stored, Reply::StoreValue(StoreValueReply::Stored));
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    let hit = store.perform(&Request::Acquire(acquire(4)), soon()).unwrap();
    assert!(is_value(&hit), "{hit:?}");
    // One that was woken leaves the line, which is a change.
    let woken = Request::Acquire(acquire(2));
    store.perform(&woken, Clock::System.now() + Duration::from_millis(50)).unwrap_err();
    writer.sql("ROLLBACK");
    assert!(is_value(&store.ask(woken)));
    assert_eq!(store.count("SELECT count(*) FROM waiter"), 1);
}
