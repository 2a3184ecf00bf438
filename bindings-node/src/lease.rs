//! Leases.

use std::sync::Arc;

use napi_derive::napi;

use crate::bridge::Bridge;
use crate::convert::{Millis, millis, span};
use crate::error::Failure;

/// A lease of a lock. When nothing refers to it any more, it is released: the facade refers to it until it ends.
#[napi]
pub struct Lease(Arc<stanchion::Lease>);

impl Lease {
    pub(crate) fn of(lease: stanchion::Lease) -> Self {
        Self(Arc::new(lease))
    }
}

#[napi]
impl Lease {
    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    #[napi(getter)]
    pub fn fence(&self) -> u64 {
        self.0.fence()
    }

    #[napi(getter)]
    pub fn token(&self) -> &str {
        self.0.token().as_str()
    }

    #[napi(getter)]
    pub fn remaining(&self) -> f64 {
        millis(self.0.remaining())
    }

    #[napi(getter)]
    pub fn valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Why it was lost, if it was.
    #[napi(getter)]
    pub fn loss(&self) -> Option<Failure> {
        self.0.loss()?;
        self.0.check().err().as_ref().map(Failure::from)
    }

    #[napi]
    pub fn extend(&self, bridge: Bridge, call: u32, ttl: Millis) -> napi::Result<()> {
        let lease = Arc::clone(&self.0);
        bridge.start(call, async move { lease.extend(ttl.0).await })
    }

    #[napi]
    pub fn release(&self, bridge: Bridge, call: u32, cooldown: Option<Millis>) -> napi::Result<()> {
        let lease = Arc::clone(&self.0);
        bridge.start(call, async move { lease.release_shared(span(cooldown)).await })
    }

    #[allow(clippy::wrong_self_convention, reason = "a JavaScript object cannot be consumed")]
    #[napi]
    pub fn into_handle(&self, bridge: Bridge, call: u32, ttl: Millis) -> napi::Result<()> {
        let lease = Arc::clone(&self.0);
        bridge.start(call, async move { Ok(lease.into_handle_shared(ttl.0).await?.to_text()) })
    }

    /// Done when the lease is lost (then it says why) or released.
    #[napi]
    pub fn wait_lost(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let lease = Arc::clone(&self.0);
        bridge.start(call, async move {
            lease.lost().await;
            Ok(lease.loss().and_then(|_| lease.check().err()).as_ref().map(Failure::from))
        })
    }
}
