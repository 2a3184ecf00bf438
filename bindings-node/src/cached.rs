//! Cached values.

use std::sync::Arc;

use napi::bindgen_prelude::{Buffer, ToNapiValue};
use napi::sys;
use napi_derive::napi;

use crate::bridge::Bridge;
use crate::client::Client;
use crate::convert::{Flag, Millis, Real, Text};

/// How a value is cached and computed.
#[napi]
pub struct CachedOptions(stanchion::CachedOptions);

#[napi]
impl CachedOptions {
    #[napi(constructor)]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub fn new(
        ttl: Millis,
        stale: Option<Millis>,
        beta: Option<Real>,
        wait: Option<Millis>,
        lease: Option<Millis>,
        max_run: Option<Millis>,
        without_store: Option<Flag>,
        label: Option<Text>,
    ) -> Self {
        let mut options = stanchion::CachedOptions::new(ttl.0);
        if let Some(stale) = stale {
            options = options.stale(stale.0);
        }
        if let Some(beta) = beta {
            options = options.beta(beta.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(lease) = lease {
            options = options.lease(lease.0);
        }
        if let Some(max_run) = max_run {
            options = options.max_run(max_run.0);
        }
        if let Some(without_store) = without_store {
            options = options.without_store(without_store.0);
        }
        if let Some(label) = label {
            options = options.label(label.0);
        }
        Self(options)
    }
}

/// The right to compute a value. When nothing refers to it any more, it is left to the next caller.
#[napi]
pub struct Ticket(Arc<stanchion::Ticket>);

/// On its way to the facade: bytes, or a ticket. If nobody takes it, it is left to the next caller.
pub struct Begun(stanchion::Begun);

impl ToNapiValue for Begun {
    unsafe fn to_napi_value(env: sys::napi_env, begun: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller vouches for the environment.
        unsafe {
            match begun.0 {
                stanchion::Begun::Value(value) => Buffer::to_napi_value(env, value.into()),
                stanchion::Begun::Compute(ticket) => Ticket::to_napi_value(env, Ticket(Arc::new(ticket))),
            }
        }
    }
}

#[napi]
impl Client {
    #[napi]
    pub fn begin_cached(
        &self,
        bridge: Bridge,
        call: u32,
        name: Text,
        options: &CachedOptions,
    ) -> napi::Result<()> {
        let (client, options) = (self.0.clone(), options.0.clone());
        bridge.start(call, async move { client.begin_cached(&name.0, options).await.map(Begun) })
    }

    #[napi]
    pub fn invalidate(&self, bridge: Bridge, call: u32, name: Text) -> napi::Result<()> {
        let client = self.0.clone();
        bridge.start(call, async move { client.invalidate(&name.0).await })
    }
}

#[napi]
impl Ticket {
    #[napi]
    pub fn store(&self, bridge: Bridge, call: u32, value: Text) -> napi::Result<()> {
        let ticket = Arc::clone(&self.0);
        bridge.start(call, async move { ticket.store(value.0).await })
    }

    /// Left to the next caller in the background.
    #[napi]
    pub fn let_go(&self) {
        self.0.let_go();
    }
}
