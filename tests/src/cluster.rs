//! A real Redis cluster for tests: nodes that are servers of their own, joined without redis-cli's waits.

use std::sync::OnceLock;
use std::time::Duration;

use redis::{FromRedisValue, RedisResult};

use crate::redis_server::{RedisServer, RedisServerBuilder};
use crate::unique;
use crate::wait::{eventually, task};

/// How long nodes may take to agree. A new master waits two seconds before it serves.
const AGREE_WITHIN: Duration = Duration::from_secs(30);
/// How many slots a cluster has.
const SLOTS: usize = 16_384;
/// After so long a silent node counts as failed, where none is meant to.
const PATIENT: &str = "30000";

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The masters first, then a replica of each, if there are any.
    pub nodes: Vec<RedisServer>,
    /// How many masters there were at the beginning.
    pub masters: usize,
}

/// The cluster of this test binary, three masters, for tests that do not disturb it. Use names of your own.
pub fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start(3, 0))
}

impl Cluster {
    /// A cluster in which nobody is meant to fail: a node may be silent for long.
    pub fn start(masters: usize, replicas: usize) -> Self {
        Self::start_with(masters, replicas, |node| node.arg("--cluster-node-timeout", PATIENT))
    }

    /// A cluster with options; so many replicas for each master.
    pub fn start_with(
        masters: usize,
        replicas: usize,
        options: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
    ) -> Self {
        let starting: Vec<_> = (0..masters * (1 + replicas))
            .map(|_| {
                let builder = options(RedisServer::builder())
                    .cluster()
                    .arg("--cluster-allow-replica-migration", "no")
                    .arg("--cluster-replica-validity-factor", "0")
                    .arg("--repl-diskless-sync-delay", "0");
                task(move || builder.start())
            })
            .collect();
        let nodes = starting.into_iter().map(|server| server.join_within(AGREE_WITHIN)).collect();
        let cluster = Self { nodes, masters };
        cluster.join();
        cluster
    }

    /// The URL with the first node as seed.
    pub fn url(&self) -> String {
        format!("redis-cluster://127.0.0.1:{}/", self.nodes[0].port())
    }

    /// The URL with prefixes that no other test uses: as if the cluster were empty.
    pub fn fresh_prefix(&self) -> String {
        let prefix = unique("fresh");
        format!("{}?lock_prefix={prefix}:&queue_prefix={prefix}-q:", self.url())
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        ask(&self.nodes[0], &["CLUSTER", "KEYSLOT", key]).expect("a slot")
    }

    /// The index of the node that serves a slot, as far as any node that runs knows; the same for all that do.
    pub fn owner(&self, slot: u16) -> Option<usize> {
        self.nodes.iter().position(|node| {
            let own: RedisResult<String> = ask(node, &["CLUSTER", "NODES"]);
            own.is_ok_and(|nodes| nodes.lines().any(|line| serves(line, slot)))
        })
    }

    /// How many masters serve the slots of these keys.
    pub fn spread(&self, keys: &[String]) -> usize {
        let mut owners: Vec<_> = keys.iter().map(|key| self.owner(self.slot(key))).collect();
        owners.sort_unstable();
        owners.dedup();
        owners.len()
    }

    /// How often nodes have answered with this error.
    pub fn errors(&self, code: &str) -> u64 {
        let count = |node: &RedisServer| {
            let info: String = ask(node, &["INFO", "errorstats"]).ok()?;
            let line =
                info.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")))?;
            line.trim().parse::<u64>().ok()
        };
        self.nodes.iter().filter_map(count).sum()
    }

    /// Moves a slot to another master while clients work, in the steps of a resharding: `half_way` runs when the
    /// slot is open at both ends and again when half of its keys have moved.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize, mut half_way: impl FnMut()) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let slot_text = slot.to_string();
        let [source_id, target_id] = [source, target].map(|node| node.cli(&["CLUSTER", "MYID"]));
        target.cli(&["CLUSTER", "SETSLOT", &slot_text, "IMPORTING", &source_id]);
        source.cli(&["CLUSTER", "SETSLOT", &slot_text, "MIGRATING", &target_id]);
        half_way();
        let keys = |count: usize| -> Vec<String> {
            ask(source, &["CLUSTER", "GETKEYSINSLOT", &slot_text, &count.to_string()]).expect("keys")
        };
        let port = target.port().to_string();
        let migrate = |keys: &[String]| {
            for key in keys {
                source.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            }
        };
        let all = keys(1_000);
        migrate(&all[..all.len() / 2]);
        half_way();
        loop {
            let rest = keys(1_000);
            if rest.is_empty() {
                break;
            }
            migrate(&rest);
        }
        // The target first, as redis-cli does: nobody may think that the slot is nobody's.
        for node in [target, source] {
            node.cli(&["CLUSTER", "SETSLOT", &slot_text, "NODE", &target_id]);
        }
    }

    fn join(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < self.masters {
                let first = (SLOTS * index / self.masters).to_string();
                let last = (SLOTS * (index + 1) / self.masters - 1).to_string();
                node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
        // Each meets each: gossip alone would take longer.
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let (port, bus) = (other.port().to_string(), other.bus_port().to_string());
                node.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        let knows_all = |node: &RedisServer| {
            let nodes = node.cli(&["CLUSTER", "NODES"]);
            nodes.lines().count() == self.nodes.len() && !nodes.contains("handshake")
        };
        eventually(AGREE_WITHIN, || self.nodes.iter().all(knows_all));
        for (index, node) in self.nodes.iter().enumerate().skip(self.masters) {
            let master = self.nodes[index % self.masters].cli(&["CLUSTER", "MYID"]);
            node.cli(&["CLUSTER", "REPLICATE", &master]);
        }
        eventually(AGREE_WITHIN, || self.nodes.iter().all(|node| self.is_ready(node)));
    }

    fn is_ready(&self, node: &RedisServer) -> bool {
        let replicas = self.nodes.len() - self.masters;
        let nodes = node.cli(&["CLUSTER", "NODES"]);
        let follow = nodes.lines().filter(|line| line.contains("slave")).count() == replicas;
        let replication = node.cli(&["INFO", "replication"]);
        let synced = !replication.contains("role:slave") || replication.contains("master_link_status:up");
        follow && synced && node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    }
}

/// Whether a line of CLUSTER NODES is of the node itself, as the master of this slot.
fn serves(line: &str, slot: u16) -> bool {
    let mut words = line.split_whitespace();
    let flags = words.nth(2).unwrap_or_default();
    let has = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
    };
    flags.contains("myself") && flags.contains("master") && words.skip(5).any(has)
}

fn ask<T: FromRedisValue>(node: &RedisServer, words: &[&str]) -> RedisResult<T> {
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(word);
    });
    command.query(&mut node.try_raw()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_the_slots_and_a_slot_can_be_moved() {
        let cluster = Cluster::start(2, 1);
        let slot = cluster.slot("foo");
        assert_eq!((slot, cluster.owner(slot), cluster.owner(0)), (12_182, Some(1), Some(0)));
        cluster.nodes[1].cli(&["SET", "foo", "bar"]);
        cluster.move_slot(slot, 1, 0, || {});
        assert_eq!(cluster.nodes[0].cli(&["GET", "foo"]), "bar");
        assert_eq!(cluster.owner(slot), Some(0));
        let keys = ["foo", "b", "c", "d", "e"].map(String::from);
        assert_eq!(cluster.spread(&keys), 2);
        assert_eq!(cluster.spread(&keys[..1]), 1);
    }
}
