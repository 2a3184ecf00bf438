//! Real Sentinels for tests, and the servers that they watch.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use redis::{FromRedisValue, RedisResult};

use crate::redis_server::builder::free_port;
use crate::redis_server::process::{program, spawn};
use crate::redis_server::{RedisServer, RedisServerBuilder, folder};
use crate::wait::{eventually, eventually_some, holds_within, task};

/// The master's name.
pub const MASTER: &str = "mymaster";
/// How long all may take to know each other.
const AGREE_WITHIN: Duration = Duration::from_secs(30);
/// How many databases the shared master has: one for each test that wants an empty one.
const DATABASES: &str = "4000";
/// How often a Sentinel is started, with other ports each time.
const STARTS: usize = 5;
/// How often a failover is asked for until there is one.
const FAILOVERS: usize = 4;
/// Stands for a Sentinel's TLS port in its file.
const TLS_PORT: &str = "@TLS_PORT";
/// After so long a silent master counts as down.
const DOWN_AFTER_MS: u32 = 1_000;
/// A Sentinel that stood still for two seconds acts on nothing for so long; by itself for 30 s each time.
const TILT_MS: &str = "1000";

/// A master, its replicas, and Sentinels that watch them.
#[derive(Debug)]
pub struct Sentinels {
    /// The first master first.
    pub servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

/// One Sentinel: a server that needs a file of its own, to which it writes.
#[derive(Debug)]
struct Sentinel {
    dir: PathBuf,
    port: u16,
    tls_port: u16,
    child: Child,
}

/// A master and one Sentinel for all tests of this binary that do not disturb them.
pub fn shared() -> &'static Sentinels {
    static SHARED: OnceLock<Sentinels> = OnceLock::new();
    SHARED.get_or_init(|| Sentinels::start_with(0, 1, |server| server.arg("--databases", DATABASES), ""))
}

impl Sentinels {
    /// Three Sentinels, of which two agree that a master is down, a master and two replicas.
    pub fn start() -> Self {
        Self::start_with(2, 3, |server| server, "")
    }

    /// So many replicas and Sentinels; `config` are more lines for the Sentinels' files.
    pub fn start_with(
        replicas: usize,
        sentinels: usize,
        options: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
        config: &str,
    ) -> Self {
        let master = options(RedisServer::builder()).start();
        let of = format!("127.0.0.1 {}", master.port());
        let starting: Vec<_> = (0..replicas)
            .map(|_| {
                let replica = options(RedisServer::builder())
                    .arg("--replicaof", &of)
                    .arg("--repl-diskless-sync-delay", "0");
                task(move || replica.start())
            })
            .collect();
        let mut servers = vec![master];
        servers.extend(starting.into_iter().map(|replica| replica.join_within(AGREE_WITHIN)));
        // What a Sentinel sees first it looks at again only after ten seconds.
        eventually(AGREE_WITHIN, || {
            servers[0].cli(&["INFO", "replication"]).matches("state=online").count() == replicas
        });
        let quorum = sentinels / 2 + 1;
        let port = servers[0].port();
        let sentinels: Vec<_> = (0..sentinels).map(|_| Sentinel::start(port, quorum, config)).collect();
        let group = Self { servers, sentinels };
        if !config.contains("requirepass") {
            eventually(AGREE_WITHIN, || group.sentinels.iter().all(|sentinel| group.is_known_to(sentinel)));
        }
        group
    }

    /// A master and a Sentinel that speak TLS, with the same certificate, also to each other.
    pub fn start_over_tls() -> Self {
        let server = RedisServer::builder().tls().start();
        let dir = server.dir().display();
        let config = format!(
            "tls-port {TLS_PORT}\ntls-replication yes\ntls-auth-clients optional\ntls-ca-cert-file {dir}/ca.crt\n\
             tls-cert-file {dir}/server.crt\ntls-key-file {dir}/server.key"
        );
        let sentinel = Sentinel::start(server.tls_port(), 1, &config);
        let group = Self { servers: vec![server], sentinels: vec![sentinel] };
        eventually(AGREE_WITHIN, || group.is_known_to(&group.sentinels[0]));
        group
    }

    /// The URL of the master, over TLS.
    pub fn tls_url(&self) -> String {
        format!("rediss-sentinel://127.0.0.1:{}/{MASTER}", self.sentinels[0].tls_port)
    }

    /// The URL of the master, by all Sentinels.
    pub fn url(&self) -> String {
        format!("redis-sentinel://{}/{MASTER}", self.hosts())
    }

    /// The URL of a database that no other test uses; only the shared master has enough of them.
    pub fn fresh_db(&self) -> String {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(1);
        format!("{}/{}", self.url(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The Sentinels' addresses, as a URL lists them.
    pub fn hosts(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        hosts.join(",")
    }

    /// The index of the server that the Sentinels name the master, once they agree and it says so itself.
    pub fn master(&self) -> Option<usize> {
        let named: Vec<u16> = self
            .sentinels
            .iter()
            .filter_map(|sentinel| {
                let answer: RedisResult<(String, u16)> =
                    sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]);
                answer.ok().map(|(_, port)| port)
            })
            .collect();
        let first = *named.first()?;
        let index = self.servers.iter().position(|server| server.port() == first)?;
        let agreed = named.len() == self.sentinels.len() && named.iter().all(|port| *port == first);
        let raw = &mut self.servers[index].try_raw().ok()?;
        let role: Vec<redis::Value> = redis::cmd("ROLE").query(raw).ok()?;
        let is_master = role.first() == Some(&redis::Value::BulkString(b"master".to_vec()));
        (agreed && is_master).then_some(index)
    }

    /// Has a replica made the master although the master is well.
    #[track_caller]
    pub fn fail_over(&self) {
        let before = eventually_some(AGREE_WITHIN, || self.master());
        for _ in 0..FAILOVERS {
            // Refused while another goes on; given up if no replica looks well at that moment.
            let _ = self.sentinels[0].ask::<String>(&["SENTINEL", "FAILOVER", MASTER]);
            if holds_within(AGREE_WITHIN / 3, || self.master().is_some_and(|master| master != before)) {
                return;
            }
        }
        panic!("the Sentinels made no other server the master");
    }

    fn is_known_to(&self, sentinel: &Sentinel) -> bool {
        let told: RedisResult<std::collections::HashMap<String, String>> =
            sentinel.ask(&["SENTINEL", "MASTER", MASTER]);
        told.is_ok_and(|told| {
            let is =
                |field: &str, count: usize| told.get(field).is_some_and(|text| *text == count.to_string());
            is("num-slaves", self.servers.len() - 1)
                && is("num-other-sentinels", self.sentinels.len() - 1)
                && told.get("flags").is_some_and(|flags| flags == "master")
        })
    }
}

impl Sentinel {
    fn start(master: u16, quorum: usize, config: &str) -> Self {
        // Somebody else may take a port before the Sentinel does: it ends then.
        let started = (0..STARTS).find_map(|_| Self::try_start(master, quorum, config));
        started.expect("a Sentinel runs")
    }

    /// `None` if it has ended.
    fn try_start(master: u16, quorum: usize, config: &str) -> Option<Self> {
        let (dir, port, tls_port) = (folder::fresh(), free_port(), free_port());
        let config = config.replace(TLS_PORT, &tls_port.to_string());
        let file = dir.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {dir}\nlogfile {dir}/log\n\
             sentinel monitor {MASTER} 127.0.0.1 {master} {quorum}\n\
             sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {MASTER} 4000\nsentinel parallel-syncs {MASTER} 2\n{config}\n",
            dir = dir.display()
        );
        fs::write(&file, text).expect("the directory is writable");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program()).arg(&file).arg("--sentinel");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut sentinel = Self { dir, port, tls_port, child: spawn(command) };
        let runs = eventually_some(AGREE_WITHIN, || {
            let answers = match sentinel.ask::<String>(&["PING"]) {
                Ok(_) => true,
                Err(error) => error.code() == Some("NOAUTH"),
            };
            let ended = sentinel.child.try_wait().expect("the Sentinel is our child").is_some();
            (answers || ended).then_some(!ended)
        });
        // Older ones cannot be told so, nor one that wants a password: those are not asked to fail over.
        let _ = sentinel.ask::<String>(&["SENTINEL", "DEBUG", "TILT-PERIOD", TILT_MS]);
        runs.then_some(sentinel)
    }

    fn ask<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port))?;
        let mut connection = client.get_connection_with_timeout(AGREE_WITHIN)?;
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        command.query(&mut connection)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            println!("the Sentinel at port {}:\n{log}", self.port);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_makes_a_replica_the_master() {
        let group = Sentinels::start_with(1, 1, |server| server, "");
        assert_eq!(group.master(), Some(0));
        group.fail_over();
        assert_eq!(group.master(), Some(1));
    }
}
