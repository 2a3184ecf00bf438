//! Leases.
//!
//! The facade has numbers for them: an object of the native half for each would keep the garbage collector busy.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use napi::bindgen_prelude::{FromNapiValue, ToNapiValue};
use napi::{ValueType, sys};
use napi_derive::napi;
use slab::Slab;
use stanchion::LossReason;
use stanchion::internals::released;

use crate::bridge::Bridge;
use crate::convert::{Millis, Text, converted, millis, span};
use crate::error::{Failure, invalid};

thread_local! {
    /// The leases that the facade of this thread has numbers for.
    /// They stay at the end of a thread whose environment did not say that it ends.
    static LEASES: RefCell<ManuallyDrop<Slab<Arc<stanchion::Lease>>>> =
        const { RefCell::new(ManuallyDrop::new(Slab::new())) };
}

/// The environment ends: what nobody released is released in the background.
pub(crate) fn forget_all() {
    for (_, lease) in ManuallyDrop::into_inner(LEASES.take()) {
        lease.let_go();
    }
}

/// A lease, by its number.
pub struct Lease(Arc<stanchion::Lease>);

converted!(Lease, ValueType::Number);

impl FromNapiValue for Lease {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller vouches for both.
        let number = unsafe { u32::from_napi_value(env, value)? };
        let found = LEASES.with_borrow(|leases| leases.get(number as usize).cloned());
        found.map(Self).ok_or_else(|| invalid("there is no such lease"))
    }
}

/// A lease on its way to the facade. If nobody takes it, it is released.
pub struct Granted(stanchion::Lease);

impl Granted {
    pub(crate) fn of(lease: stanchion::Lease) -> Self {
        Self(lease)
    }
}

impl ToNapiValue for Granted {
    unsafe fn to_napi_value(env: sys::napi_env, granted: Self) -> napi::Result<sys::napi_value> {
        let lease = granted.0;
        let (name, fence, token) =
            (lease.name().to_owned(), lease.fence().get(), lease.token().as_str().to_owned());
        let fences = lease.fences().into_iter().map(|(name, fence)| NamedFence { name, fence: fence.get() });
        // Of one lock, its name and fence say it.
        let fences = (fences.len() > 1).then(|| fences.collect());
        let number = LEASES.with_borrow_mut(|leases| leases.insert(Arc::new(lease)));
        let number = u32::try_from(number).map_err(|_| invalid("there are too many leases"))?;
        // SAFETY: the caller vouches for the environment.
        unsafe { ToNapiValue::to_napi_value(env, NewLease { number, name, fence, token, fences }) }
    }
}

/// What does not change about a lease.
#[napi(object, object_from_js = false)]
pub struct NewLease {
    pub number: u32,
    pub name: String,
    pub fence: u64,
    pub token: String,
    /// If it is of several locks.
    pub fences: Option<Vec<NamedFence>>,
}

/// The fence of one of the locks of a lease.
#[napi(object, object_from_js = false)]
pub struct NamedFence {
    pub name: String,
    pub fence: u64,
}

/// The lease is not used any more. If it is ours, it is released in the background.
#[napi]
pub fn forget_lease(number: u32) {
    let lease = LEASES.with_borrow_mut(|leases| leases.try_remove(number as usize));
    // Whoever waits for its loss has it, too.
    if let Some(lease) = lease {
        lease.let_go();
    }
}

/// The error of a lease that is used after its end.
#[napi]
pub fn released_lease(operation: Text, name: Text) -> Failure {
    let known = ["check", "extend", "downgrade", "upgrade", "release"]
        .into_iter()
        .find(|known| *known == operation.0);
    (&released(known.unwrap_or("use"), &name.0)).into()
}

#[napi]
pub fn remaining_of_lease(lease: Lease) -> f64 {
    millis(lease.0.remaining())
}

#[napi]
pub fn is_lease_valid(lease: Lease) -> bool {
    lease.0.is_valid()
}

/// Why it was lost, if it was.
#[napi]
pub fn loss_of_lease(lease: Lease) -> Option<Failure> {
    lease.0.loss()?;
    lease.0.check().err().as_ref().map(Failure::from)
}

/// The name of that reason.
#[napi]
pub fn loss_name_of_lease(lease: Lease) -> Option<&'static str> {
    lease.0.loss().map(LossReason::name)
}

/// Why it is not ours any more, if it is not.
#[napi]
pub fn check_lease(lease: Lease) -> Option<Failure> {
    lease.0.check().err().as_ref().map(Failure::from)
}

#[napi]
pub fn extend_lease(bridge: Bridge, call: u32, lease: Lease, ttl: Millis) -> napi::Result<()> {
    bridge.start(call, async move { lease.0.extend(ttl.0).await })
}

#[napi]
pub fn extend_lease_exact(bridge: Bridge, call: u32, lease: Lease, ttl: Millis) -> napi::Result<()> {
    bridge.start(call, async move { lease.0.extend_exact(ttl.0).await })
}

/// The new fence, if it is a writer's now.
#[napi]
pub fn upgrade_lease(bridge: Bridge, call: u32, lease: Lease) -> napi::Result<()> {
    bridge.start(call, async move { Ok(lease.0.upgrade().await?.then(|| lease.0.fence().get())) })
}

#[napi]
pub fn downgrade_lease(bridge: Bridge, call: u32, lease: Lease) -> napi::Result<()> {
    bridge.start(call, async move { lease.0.downgrade().await })
}

#[napi]
pub fn release_lease(bridge: Bridge, call: u32, lease: Lease, cooldown: Option<Millis>) -> napi::Result<()> {
    bridge.start(call, async move {
        match span(cooldown) {
            Some(cooldown) => lease.0.release_with_cooldown(cooldown).await,
            None => lease.0.release().await,
        }
    })
}

#[napi]
pub fn detach_lease(bridge: Bridge, call: u32, lease: Lease, ttl: Millis) -> napi::Result<()> {
    bridge.start(call, async move { Ok(lease.0.detach(ttl.0).await?.to_text()) })
}

/// Done when the lease is lost (then it says why) or released.
#[napi]
pub fn wait_lost_lease(bridge: Bridge, call: u32, lease: Lease) -> napi::Result<()> {
    bridge.start(call, async move {
        lease.0.lost().await;
        Ok(lease.0.loss().and_then(|_| lease.0.check().err()).as_ref().map(Failure::from))
    })
}
