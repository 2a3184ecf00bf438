//! Locks.

use napi::bindgen_prelude::{FromNapiRef, FromNapiValue, ValidateNapiValue};
use napi::{ValueType, sys, type_of};
use napi_derive::napi;

use crate::bridge::Bridge;
use crate::client::Client;
use crate::convert::{Flag, Millis, Text, Whole, converted, millis, wall};
use crate::error::invalid;
use crate::lease::Granted;

/// How to acquire.
#[napi]
pub struct LockOptions(stanchion::LockOptions);

#[napi]
impl LockOptions {
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    #[napi(constructor)]
    pub fn new(
        ttl: Option<Millis>,
        renew: Option<Flag>,
        max_hold: Option<Millis>,
        wait: Option<Millis>,
        fail_fast: Option<Flag>,
        adopt_unexpiring: Option<Millis>,
        label: Option<Text>,
        weight: Option<Whole>,
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
        if let Some(weight) = weight {
            options = options.weight(weight.narrow(u32::MAX));
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
    pub weight: u32,
}

impl From<stanchion::Holder> for Holder {
    fn from(holder: stanchion::Holder) -> Self {
        Self {
            held_as: holder.held_as.name(),
            label: holder.label,
            host: holder.host,
            pid: holder.pid,
            fence: holder.fence.get(),
            since: holder.since.map(wall),
            remaining: holder.remaining.map(millis),
            waiters: holder.waiters as f64,
            weight: holder.weight,
        }
    }
}

/// One of those who wait for a lock. Times are milliseconds, `since` from 1970 on.
#[napi(object, object_from_js = false)]
pub struct Waiter {
    pub label: String,
    pub host: String,
    pub pid: u32,
    pub since: Option<f64>,
    pub waiting: Option<f64>,
    pub weight: u32,
}

impl From<stanchion::Waiter> for Waiter {
    fn from(waiter: stanchion::Waiter) -> Self {
        Self {
            label: waiter.label,
            host: waiter.host,
            pid: waiter.pid,
            since: waiter.since.map(wall),
            waiting: waiter.waiting.map(millis),
            weight: waiter.weight,
        }
    }
}

/// A lock that is more than the name of an exclusive one.
#[napi]
pub struct Lock(stanchion::Lock);

#[napi]
impl Lock {
    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    #[napi]
    pub fn reentrant(&self, owner: Text) -> Lock {
        Lock(self.0.reentrant(&owner.0))
    }
}

/// The name of an exclusive lock, or a lock of any kind.
pub enum Named {
    Name(Text),
    Made(stanchion::Lock),
}

converted!(Named, ValueType::Object);

impl FromNapiValue for Named {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        if type_of!(env, value)? != ValueType::Object {
            // SAFETY: the caller vouches for both.
            return unsafe { Text::from_napi_value(env, value) }.map(Self::Name);
        }
        // SAFETY: as above.
        if unsafe { <&Lock>::validate(env, value) }.is_err() {
            return Err(invalid("the name of a lock is a text; several have client.multiLock(names)"));
        }
        // SAFETY: as above, and it is an object of the class.
        let lock = unsafe { Lock::from_napi_ref(env, value)? };
        Ok(Self::Made(lock.0.clone()))
    }
}

impl Named {
    fn of(self, client: &Client) -> stanchion::Lock {
        match self {
            Self::Name(name) => client.0.lock(&name.0),
            Self::Made(lock) => lock,
        }
    }
}

#[napi]
impl Client {
    #[napi]
    pub fn lock(&self, name: Text) -> Lock {
        Lock(self.0.lock(&name.0))
    }

    #[napi]
    pub fn reader(&self, name: Text) -> Lock {
        Lock(self.0.rw_lock(&name.0).read().clone())
    }

    #[napi]
    pub fn writer(&self, name: Text) -> Lock {
        Lock(self.0.rw_lock(&name.0).write().clone())
    }

    #[napi]
    pub fn semaphore(&self, name: Text, permits: Whole) -> Lock {
        Lock(self.0.semaphore(&name.0, permits.narrow(u32::MAX)))
    }

    #[napi]
    pub fn multi_lock(&self, names: Vec<Text>) -> Lock {
        let names: Vec<&str> = names.iter().map(|name| &*name.0).collect();
        Lock(self.0.multi_lock(&names))
    }
}

/// The methods of locks, by name where it will do: an object for each would cost more than the name.
#[napi]
impl Client {
    #[napi]
    pub fn acquire(
        &self,
        bridge: Bridge,
        call: u32,
        lock: Named,
        options: Option<&LockOptions>,
    ) -> napi::Result<()> {
        let (lock, options) = (lock.of(self), chosen(options));
        bridge.start(call, async move { lock.acquire(options).await.map(Granted::of) })
    }

    #[napi]
    pub fn try_acquire(
        &self,
        bridge: Bridge,
        call: u32,
        lock: Named,
        options: Option<&LockOptions>,
    ) -> napi::Result<()> {
        let (lock, options) = (lock.of(self), chosen(options));
        bridge.start(call, async move { Ok(lock.try_acquire(options).await?.map(Granted::of)) })
    }

    #[napi]
    pub fn holder(&self, bridge: Bridge, call: u32, lock: Named) -> napi::Result<()> {
        let lock = lock.of(self);
        bridge.start(call, async move { Ok(lock.holder().await?.map(Holder::from)) })
    }

    #[napi]
    pub fn holders(&self, bridge: Bridge, call: u32, lock: Named) -> napi::Result<()> {
        let lock = lock.of(self);
        bridge.start(call, async move {
            Ok(lock.holders().await?.into_iter().map(Holder::from).collect::<Vec<_>>())
        })
    }

    #[napi]
    pub fn waiters(&self, bridge: Bridge, call: u32, lock: Named) -> napi::Result<()> {
        let lock = lock.of(self);
        bridge.start(call, async move {
            Ok(lock.waiters().await?.into_iter().map(Waiter::from).collect::<Vec<_>>())
        })
    }

    #[napi]
    pub fn is_locked(&self, bridge: Bridge, call: u32, lock: Named) -> napi::Result<()> {
        let lock = lock.of(self);
        bridge.start(call, async move { lock.is_locked().await })
    }

    #[napi]
    pub fn break_lease(&self, bridge: Bridge, call: u32, lock: Named) -> napi::Result<()> {
        let lock = lock.of(self);
        bridge.start(call, async move { lock.break_lease().await })
    }
}

fn chosen(options: Option<&LockOptions>) -> stanchion::LockOptions {
    options.map_or_else(stanchion::LockOptions::new, |options| options.0.clone())
}
