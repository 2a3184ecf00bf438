//! What this project's own bindings, simulator and tests need beyond the public API. Not covered by semver.

pub use crate::base::clock::{Clock, ManualClock, Moment};
#[cfg(feature = "redis")]
pub use crate::base::host_loop::{Host, HostLoop};
pub use crate::base::token::Token;
pub use crate::session::call_slots::CallSlots;

use crate::base::error::Error;
use crate::base::name::{LimiterName, LockKind, LockName, Prefixes, QueueName, TaskId, TaskKey};
use crate::base::wake::Hub;
use crate::protocol::ClientId;
use crate::store::StoreConfig;

/// The lock called `name` under the default prefixes.
pub fn lock_name(name: &str) -> Result<LockName, Error> {
    prefixes()?.lock_name(name)
}

/// The lock of this kind called `name` under the default prefixes.
pub fn name_of_kind(kind: LockKind, name: &str) -> Result<LockName, Error> {
    prefixes()?.name_of_kind(kind, name)
}

/// The limiter called `name` under the default prefixes.
pub fn limiter_name(name: &str) -> Result<LimiterName, Error> {
    prefixes()?.limiter_name(name)
}

/// The queue called `name` under the default prefixes.
pub fn queue_name(name: &str) -> Result<QueueName, Error> {
    prefixes()?.queue_name(name)
}

/// The checked id of a task.
pub fn task_id(id: &str) -> Result<TaskId, Error> {
    TaskId::parse(id)
}

/// The key, checked as a client would.
pub fn task_key(key: &str) -> Result<TaskKey, Error> {
    TaskKey::parse(key)
}

/// The token made of these bits.
pub fn token(bits: u128) -> Token {
    Token::from_bits(bits)
}

/// The error of a lease that is used after its end, for a binding that does not keep it so long.
pub fn released(operation: &'static str, name: &str) -> Error {
    crate::session::tracked_lease::released().during(operation, name)
}

/// A store's configuration with the default prefixes.
pub fn store_config(clock: Clock, client: u64) -> Result<StoreConfig, Error> {
    Ok(StoreConfig {
        prefixes: prefixes()?,
        clock,
        hub: Hub::new(ClientId(client)),
        clock_margin: crate::protocol::CLOCK_MARGIN,
    })
}

fn prefixes() -> Result<Prefixes, Error> {
    Prefixes::parse(
        crate::session::options::DEFAULT_LOCK_PREFIX,
        crate::session::options::DEFAULT_QUEUE_PREFIX,
    )
}
