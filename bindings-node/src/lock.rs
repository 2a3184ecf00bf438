//! Locks.

use napi_derive::napi;

use crate::bridge::Bridge;
use crate::client::Client;
use crate::convert::{Flag, Millis, Text, millis, wall};
use crate::lease::Granted;

/// How to acquire.
#[napi]
pub struct LockOptions(stanchion::LockOptions);

#[napi]
impl LockOptions {
    #[napi(constructor)]
    pub fn new(
        ttl: Option<Millis>,
        renew: Option<Flag>,
        max_hold: Option<Millis>,
        wait: Option<Millis>,
        fail_fast: Option<Flag>,
        adopt_unexpiring: Option<Millis>,
        label: Option<Text>,
    ) -> Self {
        let mut options = stanchion::LockOptions::new();
        if let Some(ttl) = ttl {
            options = options.ttl(ttl.0);
        }
        if let Some(renew) = renew {
            options = options.renew(renew.0);
        }
        if let Some(max_hold) = max_hold {
            options = options.max_hold(max_hold.0);
        }
        if let Some(wait) = wait {
            options = options.wait(wait.0);
        }
        if let Some(fail_fast) = fail_fast {
            options = options.fail_fast(fail_fast.0);
        }
        if let Some(grace) = adopt_unexpiring {
            options = options.adopt_unexpiring(grace.0);
        }
        if let Some(label) = label {
            options = options.label(label.0);
        }
        Self(options)
    }
}

/// Who holds a lock. Times are milliseconds, `since` from 1970 on.
#[napi(object, object_from_js = false)]
pub struct Holder {
    pub held_as: &'static str,
    pub label: String,
    pub host: String,
    pub pid: u32,
    pub fence: u64,
    pub since: Option<f64>,
    pub remaining: Option<f64>,
    pub waiters: f64,
}

impl From<stanchion::Holder> for Holder {
    fn from(holder: stanchion::Holder) -> Self {
        Self {
            held_as: holder.held_as.name(),
            label: holder.label,
            host: holder.host,
            pid: holder.pid,
            fence: holder.fence,
            since: holder.since.map(wall),
            remaining: holder.remaining.map(millis),
            waiters: holder.waiters as f64,
        }
    }
}

/// The methods of locks, by name: an object for each would cost more than the name.
#[napi]
impl Client {
    #[napi]
    pub fn acquire(
        &self,
        bridge: Bridge,
        call: u32,
        name: Text,
        options: Option<&LockOptions>,
    ) -> napi::Result<()> {
        let (lock, options) = (self.0.lock(&name.0), chosen(options));
        bridge.start(call, async move { lock.acquire(options).await.map(Granted::of) })
    }

    #[napi]
    pub fn try_acquire(
        &self,
        bridge: Bridge,
        call: u32,
        name: Text,
        options: Option<&LockOptions>,
    ) -> napi::Result<()> {
        let (lock, options) = (self.0.lock(&name.0), chosen(options));
        bridge.start(call, async move { Ok(lock.try_acquire(options).await?.map(Granted::of)) })
    }

    #[napi]
    pub fn holder(&self, bridge: Bridge, call: u32, name: Text) -> napi::Result<()> {
        let lock = self.0.lock(&name.0);
        bridge.start(call, async move { Ok(lock.holder().await?.map(Holder::from)) })
    }

    #[napi]
    pub fn is_locked(&self, bridge: Bridge, call: u32, name: Text) -> napi::Result<()> {
        let lock = self.0.lock(&name.0);
        bridge.start(call, async move { lock.is_locked().await })
    }

    #[napi]
    pub fn break_lease(&self, bridge: Bridge, call: u32, name: Text) -> napi::Result<()> {
        let lock = self.0.lock(&name.0);
        bridge.start(call, async move { lock.break_lease().await })
    }
}

fn chosen(options: Option<&LockOptions>) -> stanchion::LockOptions {
    options.map_or_else(stanchion::LockOptions::new, |options| options.0.clone())
}
