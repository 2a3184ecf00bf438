//! Locks on Redis or Valkey, one server or several: each verb is one Lua script.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use redis::Value;

use crate::base::clock::{Clock, Moment};
use crate::base::error::{Error, ErrorKind};
use crate::base::name::{LockKind, LockName, Prefixes, QueueName};
use crate::protocol::{
    ACQUIRE_ALL_MAX, ClientId, Failure, FailureKind, LIMITER_REST, LimitKind, Reply, Request,
};
use crate::store::Finding;
use crate::store::url::{Address, Endpoint, RedisAddress, RedisPlace};
use crate::store::{Begun, Deliver, Hear, Hints, LimiterNames, Opened, Opening, Pending, Store, StoreConfig};

mod address;
#[cfg(feature = "cluster")]
mod cluster;
pub mod code;
mod codec;
pub mod confirm;
mod connector;
mod doctor;
mod era;
mod failure;
mod hints;
pub(crate) mod keys;
pub(crate) mod life;
mod look;
mod multiplexed;
#[cfg(not(feature = "cluster"))]
mod no_cluster;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod node;
pub mod packed;
mod patience;
mod pool;
pub mod script;
mod sending;
#[cfg(feature = "cluster")]
mod sentinel;
mod server;
mod servers;
#[cfg(feature = "tls")]
mod tls;

#[cfg(not(feature = "tls"))]
use no_tls as tls;
#[cfg(not(feature = "cluster"))]
use {no_cluster as cluster, no_cluster as sentinel};

use confirm::Confirm;
use doctor::Told;
use node::Calls;
use script::Scripts;
use servers::{Kind, Servers};

pub use failure::ACL_RULE;

/// Oldest server that has every command the scripts use.
const MIN_VERSION: (u32, u32) = (6, 2);
/// Keys looked at per step of a listing.
const SCAN_COUNT: u32 = 500;

/// A Redis or Valkey server, the master that Sentinels name, or a cluster.
pub struct RedisStore {
    prefixes: Prefixes,
    clock: Clock,
    client: ClientId,
    servers: Servers,
    confirm: Option<Confirm>,
}

/// Opens what is on servers, but a quorum of them.
pub(crate) fn open(address: &Address, config: &StoreConfig) -> Opened {
    let Address::Redis(address) = address else { return None };
    if matches!(address.place, RedisPlace::Quorum(_)) {
        return None;
    }
    Some(RedisStore::new(address, config).map(|store| Arc::new(store) as Arc<dyn Store>))
}

impl RedisStore {
    /// A store that connects on first use.
    pub fn new(address: &RedisAddress, config: &StoreConfig) -> Result<Self, Error> {
        Ok(Self::on(address::servers(address)?, address.confirm, config))
    }

    /// One server of a quorum, whose address has what is common to all of them.
    pub(crate) fn member(
        address: &RedisAddress,
        server: &Endpoint,
        life: life::Life,
        config: &StoreConfig,
    ) -> Result<Self, Error> {
        Ok(Self::on(address::member(address, server, life)?, address.confirm, config))
    }

    fn on(kind: Kind, confirm: Option<Confirm>, config: &StoreConfig) -> Self {
        // Completed now: a fork while another thread does it would leave the child waiting for ever.
        LazyLock::force(&script::SCRIPTS);
        Self {
            prefixes: config.prefixes.clone(),
            clock: config.clock.clone(),
            client: config.hub.client(),
            servers: Servers::new(kind, Scripts::of(config.clock_margin)),
            confirm,
        }
    }

    fn give_up(&self, until: Moment) -> Instant {
        Instant::now() + until.since(self.clock.now())
    }

    /// One step over the keys of one type.
    fn scan(
        &self,
        page: u64,
        pattern: &str,
        kind: &str,
        until: Moment,
    ) -> Result<(u64, Vec<String>), Failure> {
        let step = |cursor, call: Calls<'_>| keys_of_a_step(cursor, pattern, kind, call);
        let (next, keys) = self.servers.scan(page, step, self.give_up(until))?;
        Ok((next, keys.unwrap_or_default()))
    }
}

impl Store for RedisStore {
    fn perform(&self, request: &Request, until: Moment) -> Result<Reply, Failure> {
        let value = self.servers.run(request, self.give_up(until))?;
        codec::decode(request, &value)
    }

    fn begin<'a>(&'a self, request: &'a Request, until: Moment) -> Option<Begun<'a>> {
        let exchange = self.servers.begin(request, self.give_up(until))?;
        Some(Box::new(move || codec::decode(request, &exchange.finish()?)))
    }

    fn perform_async<'a>(&'a self, request: &'a Request, until: Moment) -> Pending<'a> {
        let give_up = self.give_up(until);
        Box::pin(async move {
            let value = self.servers.run_async(request, give_up).await?;
            codec::decode(request, &value)
        })
    }

    fn perform_all(&self, requests: &[Request], until: Moment, hear: Hear<'_, Reply>) {
        self.servers.run_all(requests, self.give_up(until), &mut |number, value| {
            hear(number, value.and_then(|value| codec::decode(&requests[number], &value)));
        });
    }

    fn can_acquire_all(&self, names: &mut dyn Iterator<Item = &LockName>) -> bool {
        let keys: Vec<_> = names.map(LockName::key).collect();
        // Replicas confirm a lease, not several at once.
        self.confirm.is_none() && keys.len() <= ACQUIRE_ALL_MAX && self.servers.are_together(&keys)
    }

    fn listen(&self, until: Moment) -> Result<Option<Box<dyn Hints>>, Failure> {
        let channel = keys::channel(self.client);
        Ok(Some(Box::new(self.servers.hints(&channel, self.give_up(until))?)))
    }

    fn listen_hosted(&self, until: Moment, deliver: Deliver) -> Option<Opening<'_>> {
        let connector = self.servers.hosting()?;
        let (channel, give_up) = (keys::channel(self.client), self.give_up(until));
        Some(Box::pin(hints::hosted(connector, channel, give_up, deliver)))
    }

    fn check(&self, until: Moment) -> Result<(), Failure> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        let text = match self.servers.call(&info, self.give_up(until)) {
            Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => {
                let message = "unexpected reply to INFO; is the server really Redis or Valkey?";
                return Err(Failure::new(FailureKind::Final(ErrorKind::Corrupt), message));
            }
            // A user who may not ask for the version may still use locks; one who may not log in may not.
            Err(failure) if failure.kind == FailureKind::Final(ErrorKind::Denied) => {
                return self.servers.call(&redis::cmd("PING"), self.give_up(until)).map(drop);
            }
            Err(failure) => return Err(failure),
        };
        match version(&text) {
            Some(found) if found < MIN_VERSION => Err(Failure::new(
                FailureKind::Final(ErrorKind::Unsupported),
                format!(
                    "{} runs Redis {}.{}; {}.{} or newer is needed",
                    self.servers.place(),
                    found.0,
                    found.1,
                    MIN_VERSION.0,
                    MIN_VERSION.1
                ),
            )),
            _ if text.contains("redis_mode:sentinel") => Err(Failure::new(
                FailureKind::Final(ErrorKind::Unsupported),
                format!(
                    "{} is a Sentinel; write redis-sentinel:// instead of redis:// in the URL, and the name of the \
                     master after the host",
                    self.servers.place()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn doctor(&self, until: Moment) -> Result<Vec<Finding>, Failure> {
        let give_up = self.give_up(until);
        let Value::BulkString(info) = self.servers.call(&redis::cmd("INFO"), give_up)? else {
            return Err(Failure::new(
                FailureKind::Final(ErrorKind::Corrupt),
                "unexpected reply to INFO; is the server really Redis or Valkey?",
            ));
        };
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg("appendfsync").arg("save");
        // Most users may not ask that.
        let settings =
            self.servers.call(&ask, give_up).ok().and_then(|value| redis::from_redis_value(value).ok());
        let told = Told::new(&String::from_utf8_lossy(&info), settings.unwrap_or_default());
        let mut findings = told.findings();
        findings.extend(self.confirm.map(|confirm| told.confirmation(confirm)));
        let (sent, ours) = (Instant::now(), self.clock.wall_micros());
        let time = self.servers.call(&redis::cmd("TIME"), give_up)?;
        findings.push(doctor::clock(&time, ours, sent));
        Ok(findings)
    }

    fn close_inherited(&self) {
        self.servers.close_inherited();
    }

    fn close(&self) {
        self.servers.close();
    }

    fn list(&self, kind: LockKind, cursor: u64, until: Moment) -> Result<(u64, Vec<LockName>), Failure> {
        let prefix = escaped(self.prefixes.lock_prefix());
        let (pattern, type_name) = match keys::holders_word(kind) {
            None => (format!("{prefix}*"), "string"),
            Some(word) => {
                let type_name = if kind.has_permits() { "zset" } else { "string" };
                (format!("stanchion:*{word}:*{prefix}*"), type_name)
            }
        };
        let (next, keys) = self.scan(cursor, &pattern, type_name, until)?;
        let lock = |key: &String| self.prefixes.lock_of_key(kind, keys::lock_of_holders(kind, key)?);
        Ok((next, keys.iter().filter_map(lock).collect()))
    }

    fn list_limiters(&self, kind: LimitKind, cursor: u64, until: Moment) -> Result<LimiterNames, Failure> {
        let pattern = format!("stanchion:*{}:*{}*", kind.name(), escaped(self.prefixes.lock_prefix()));
        let type_name = if kind == LimitKind::SlidingWindow { "zset" } else { "string" };
        let step = |cursor, call: Calls<'_>| {
            let (next, keys) = keys_of_a_step(cursor, &pattern, type_name, call)?;
            let limiter = |key: &String| {
                let name = self.prefixes.limiter_of_key(keys::limiter_of_key(kind, key)?)?;
                Some(time_to_live(key, call).map(|left| (name, left.saturating_sub(LIMITER_REST))))
            };
            Ok((next, keys.iter().filter_map(limiter).collect::<Result<Vec<_>, _>>()?))
        };
        let (next, limiters) = self.servers.scan(cursor, step, self.give_up(until))?;
        let is_used = |(_, left): &(_, Duration)| !left.is_zero();
        Ok((next, limiters.into_iter().flatten().filter(is_used).collect()))
    }

    fn list_queues(&self, cursor: u64, until: Moment) -> Result<(u64, Vec<QueueName>), Failure> {
        let pattern = format!("stanchion:*queue:*{}*", escaped(self.prefixes.queue_prefix()));
        let (next, keys) = self.scan(cursor, &pattern, "hash", until)?;
        let queue = |key: &String| self.prefixes.queue_of_key(keys::queue_of_record(key)?);
        Ok((next, keys.iter().filter_map(queue).collect()))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.servers.place())
    }
}

/// The command that performs a request, with its script's text: for tests that change the text, to set the time.
pub fn command_with_text(request: &Request) -> redis::Cmd {
    codec::encode_with_text(request, &script::SCRIPTS)
}

/// What the answer to it means.
pub fn decoded(request: &Request, value: &Value) -> Result<Reply, Failure> {
    codec::decode(request, value)
}

/// The version in the reply to INFO. Valkey reports the Redis version it is compatible with.
fn version(info: &str) -> Option<(u32, u32)> {
    let text = info.lines().find_map(|line| line.strip_prefix("redis_version:"))?;
    let mut parts = text.split('.').map(|part| part.trim().parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// One step over the keys of one type; those that are no text are not ours.
fn keys_of_a_step(
    cursor: u64,
    pattern: &str,
    kind: &str,
    call: Calls<'_>,
) -> Result<(u64, Vec<String>), Failure> {
    let mut scan = redis::cmd("SCAN");
    scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg(kind);
    let (next, keys): (u64, Vec<Vec<u8>>) = redis::from_redis_value(call(&scan)?)
        .map_err(|_| Failure::new(FailureKind::Lost, "unexpected reply to SCAN"))?;
    Ok((next, keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect()))
}

/// For how long a key is still there; zero if it is gone.
fn time_to_live(key: &str, call: Calls<'_>) -> Result<Duration, Failure> {
    let left = call(redis::cmd("PTTL").arg(key))?;
    let left: i64 = redis::from_redis_value(left)
        .map_err(|_| Failure::new(FailureKind::Lost, "unexpected reply to PTTL"))?;
    Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

/// The text as a glob pattern that matches only itself.
fn escaped(text: &str) -> String {
    let special = |letter| matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^');
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare() {
        assert_eq!(version("# Server\r\nredis_version:7.0.15\r\n"), Some((7, 0)));
        assert!(version("redis_version:6.0.9").is_some_and(|found| found < MIN_VERSION));
        assert_eq!(version("nothing"), None);
    }

    #[test]
    fn a_prefix_is_not_a_pattern() {
        assert_eq!(escaped("a*[b]"), "a\\*\\[b\\]");
    }
}
