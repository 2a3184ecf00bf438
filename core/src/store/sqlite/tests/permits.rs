//! Permits: copies that arrive late.

use super::{acquire_of, memory, token};
use crate::base::name::{LockKind, LockName};
use crate::protocol::{
    Acquire, AcquireReply, Downgrade, DowngradeReply, Permits, Reply, Request, Upgrade, UpgradeReply,
};

/// A client does not upgrade after a downgrade that it has not heard of; the store does not rely on that.
#[test]
fn a_late_downgrade_takes_nothing_back_from_an_upgrade() {
    let (store, _) = memory();
    let name: LockName = super::prefixes().name_of_kind(LockKind::ReadWrite, "a").unwrap();
    let permits = Permits { weight: 10, limit: 10 };
    let write = Acquire { name: name.clone(), permits: Some(permits), ..acquire_of("a", 1) };
    let Reply::Acquire(AcquireReply::Granted { fence, .. }) = store.ask(Request::Acquire(write)) else {
        panic!("the lock is free");
    };
    let downgrade = |fence| Downgrade { name: name.clone(), token: token(1), weight: 1, fence: Some(fence) };
    let first = store.ask(Request::Downgrade(downgrade(fence)));
    assert_eq!(first, Reply::Downgrade(DowngradeReply::Downgraded));
    let upgrade = Upgrade { name: name.clone(), token: token(1), limit: 10 };
    let Reply::Upgrade(UpgradeReply::Upgraded(newer)) = store.ask(Request::Upgrade(upgrade)) else {
        panic!("nobody else reads");
    };
    store.ask(Request::Downgrade(downgrade(fence)));
    let read = || {
        let permits = Some(Permits { weight: 1, limit: 10 });
        let read = Acquire { name: name.clone(), permits, ..acquire_of("a", 2) };
        matches!(store.ask(Request::Acquire(read)), Reply::Acquire(AcquireReply::Granted { .. }))
    };
    assert!(!read(), "the late copy let a reader in");
    store.ask(Request::Downgrade(downgrade(newer)));
    assert!(read());
}
