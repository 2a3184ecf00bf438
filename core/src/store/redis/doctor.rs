//! What a server reports of itself, and what follows for the promises.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use redis::Value;

use crate::store::redis::confirm::Confirm;
use crate::store::{Finding, Health};

/// A server's clock may differ so much from ours: due times that are given as times of day are off by it.
const CLOCKS_AGREE: Duration = Duration::from_secs(1);

/// The replies to INFO and, if it is allowed, to CONFIG GET.
pub(super) struct Told {
    fields: HashMap<String, String>,
    settings: HashMap<String, String>,
}

impl Told {
    pub(super) fn new(info: &str, settings: Vec<(String, String)>) -> Self {
        let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.into(), value.trim().into()));
        Self { fields: info.lines().filter_map(pair).collect(), settings: settings.into_iter().collect() }
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Everything that follows without asking more.
    pub(super) fn findings(&self) -> Vec<Finding> {
        vec![self.server(), self.role(), self.replication(), self.persistence(), self.memory()]
    }

    fn server(&self) -> Finding {
        let valkey = self.field("valkey_version");
        let (name, version) = match valkey.is_empty() {
            true => ("Redis", self.field("redis_version")),
            false => ("Valkey", valkey),
        };
        let mode = self.field("redis_mode");
        Finding::good("server", "every verb is one atomic step", format!("{name} {version}, {mode}"))
    }

    fn role(&self) -> Finding {
        let role = self.field("role");
        let finding = Finding::good("role", "locks and queues can be changed", format!("it is a {role}"));
        match role {
            "master" => finding,
            _ => finding
                .but(Health::Bad, "connect to the master; redis-sentinel:// and redis-cluster:// find it"),
        }
    }

    fn replication(&self) -> Finding {
        let promise = "no held lock is granted again, even if the server fails";
        let replicas: u32 = self.field("connected_slaves").parse().unwrap_or(0);
        let finding = Finding::good("replication", promise, format!("{replicas} replicas"));
        match replicas {
            0 => finding,
            _ => finding.but(
                Health::Warning,
                "a failover to a replica that has not seen a grant can give the lock to another; fences protect",
            ),
        }
    }

    /// Whether there are the replicas that must confirm a lease.
    pub(super) fn confirmation(&self, confirm: Confirm) -> Finding {
        let promise = "a lease counts only when replicas have it";
        let Confirm { replicas, within } = confirm;
        let here: u32 = self.field("connected_slaves").parse().unwrap_or(0);
        let found = format!("{replicas} must confirm within {within:?}, and there are {here}");
        let finding = Finding::good("min_replicas", promise, found);
        match here.cmp(&replicas) {
            Ordering::Less => {
                finding.but(Health::Bad, "no lease is given; add replicas, or lower min_replicas in the URL")
            }
            Ordering::Equal => finding.but(Health::Warning, "if one of them fails, no lease is given"),
            Ordering::Greater => finding,
        }
    }

    fn persistence(&self) -> Finding {
        let promise = "an acknowledged task outlives a crash of the server";
        let log = self.field("aof_enabled") == "1";
        match (log, self.setting("appendfsync"), self.setting("save")) {
            (true, Some("always"), _) => {
                Finding::good("persistence", promise, "a log, synced at every write")
            }
            (true, sync, _) => {
                let found = format!("a log, synced {}", sync.unwrap_or("at unknown times"));
                let advice = "what the log has not synced is lost in a power cut, usually a second; appendfsync always \
                              loses nothing";
                Finding::good("persistence", promise, found).but(Health::Warning, advice)
            }
            (false, _, Some("")) => Finding::good("persistence", promise, "nothing is written to the disk")
                .but(Health::Bad, "tasks are lost when the server restarts; set appendonly yes"),
            (false, ..) => Finding::good("persistence", promise, "snapshots only").but(
                Health::Bad,
                "tasks since the last snapshot are lost when the server dies; set appendonly yes",
            ),
        }
    }

    fn memory(&self) -> Finding {
        let promise = "the server evicts no lock and no task";
        let most: u64 = self.field("maxmemory").parse().unwrap_or(0);
        let policy = self.field("maxmemory_policy");
        let finding = Finding::good("memory", promise, format!("maxmemory {most}, policy {policy}"));
        match (most, policy) {
            (0, _) => finding,
            (_, "noeviction") => finding,
            (_, "") => finding.but(Health::Unknown, "it must be noeviction"),
            _ => finding.but(
                Health::Bad,
                "locks and tasks are evicted when memory is full; set maxmemory-policy noeviction",
            ),
        }
    }
}

/// The offset of the server's clock, from its answer to TIME.
pub(super) fn clock(value: &Value, ours_us: u64, sent: Instant) -> Finding {
    let promise = "a task with a due time is delivered at that time";
    let Some(theirs_us) = time(value) else {
        return Finding::good("clock", promise, "unexpected reply to TIME")
            .but(Health::Unknown, "is it Redis?");
    };
    // It was read somewhere between sending and now.
    let slack = sent.elapsed();
    let offset = Duration::from_micros(theirs_us.abs_diff(ours_us));
    let direction = if theirs_us < ours_us { "behind" } else { "ahead" };
    let found = format!("{offset:.1?} {direction} of this machine's, or {slack:.1?} less");
    let finding = Finding::good("clock", promise, found);
    match offset > CLOCKS_AGREE + slack {
        true => finding.but(Health::Warning, "set both clocks by NTP; delays do not depend on it"),
        false => finding,
    }
}

fn time(value: &Value) -> Option<u64> {
    let Value::Array(parts) = value else { return None };
    let number = |part: &Value| match part {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    let [seconds, micros] = &parts[..] else { return None };
    number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(info: &str, settings: &[(&str, &str)]) -> HashMap<&'static str, Health> {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Told::new(info, settings)
            .findings()
            .into_iter()
            .map(|finding| (finding.what, finding.health))
            .collect()
    }

    const CALM: &str = "redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nconnected_slaves:0\r\n\
                        aof_enabled:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";

    #[test]
    fn a_server_that_is_set_up_well_is_good() {
        let all = found(CALM, &[("appendfsync", "always")]);
        assert!(all.values().all(|health| *health == Health::Good), "{all:?}");
    }

    #[test]
    fn each_weakness_is_told() {
        let rows = [
            ("role:master", "role:slave", "role", Health::Bad),
            ("connected_slaves:0", "connected_slaves:2", "replication", Health::Warning),
            ("aof_enabled:1", "aof_enabled:0", "persistence", Health::Bad),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction",
                "maxmemory:99\r\nmaxmemory_policy:allkeys-lru",
                "memory",
                Health::Bad,
            ),
            ("maxmemory:0", "maxmemory:99", "memory", Health::Good),
        ];
        for (from, to, what, health) in rows {
            let all = found(&CALM.replace(from, to), &[("appendfsync", "always"), ("save", "3600 1")]);
            assert_eq!(all[what], health, "{to}");
        }
        assert_eq!(found(CALM, &[("appendfsync", "everysec")])["persistence"], Health::Warning);
        assert_eq!(found(CALM, &[])["persistence"], Health::Warning);
    }

    #[test]
    fn replicas_that_must_confirm_are_counted() {
        let confirm = Confirm { replicas: 1, within: Duration::from_millis(100) };
        let health = |count: u32| {
            let info = CALM.replace("connected_slaves:0", &format!("connected_slaves:{count}"));
            Told::new(&info, Vec::new()).confirmation(confirm).health
        };
        assert_eq!((health(0), health(1), health(2)), (Health::Bad, Health::Warning, Health::Good));
    }

    #[test]
    fn clocks_are_compared() {
        let told = |seconds: u64| {
            let text = |number: u64| Value::BulkString(number.to_string().into_bytes());
            clock(&Value::Array(vec![text(seconds), text(0)]), 100_000_000, Instant::now()).health
        };
        assert_eq!((told(100), told(50), told(200)), (Health::Good, Health::Warning, Health::Warning));
        assert_eq!(clock(&Value::Nil, 0, Instant::now()).health, Health::Unknown);
    }
}
