//! Independent servers that vote.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::RedisServer;
use crate::redis_server::{DATABASES, RedisServerBuilder};

/// Servers that know nothing of each other.
#[derive(Debug)]
pub struct Quorum {
    /// All of them, in the order of the URL.
    pub servers: Vec<RedisServer>,
}

/// The quorum of this test binary, for tests that do not disturb it.
pub fn shared() -> &'static Quorum {
    static SHARED: OnceLock<Quorum> = OnceLock::new();
    SHARED.get_or_init(|| Quorum::start(3))
}

impl Quorum {
    /// So many servers, without persistence.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, |server| server.arg("--databases", &DATABASES.to_string()))
    }

    /// So many servers that are set up like this.
    pub fn start_with(count: usize, set_up: impl Fn(RedisServerBuilder) -> RedisServerBuilder) -> Self {
        Self { servers: (0..count).map(|_| set_up(RedisServer::builder()).start()).collect() }
    }

    /// A URL by which servers take part as soon as they run.
    pub fn url(&self) -> String {
        self.url_with("rejoin_after=0")
    }

    /// The URL with these parameters.
    pub fn url_with(&self, parameters: &str) -> String {
        url_of(self.servers.iter().map(RedisServer::port), parameters)
    }

    /// The URL of a database that no other test uses. All servers answer there, so that they are waited for, however
    /// slow the machine is.
    pub fn fresh_db(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        self.url_with("rejoin_after=0&node_timeout=0.5")
            .replace("/?", &format!("/{}?", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// How many servers hold the key of a lock.
    pub fn holding(&self, name: &str) -> usize {
        let holds = |server: &&RedisServer| server.cli(&["EXISTS", &format!("Lock:{name}")]) == "1";
        self.servers.iter().filter(holds).count()
    }
}

/// The URL of servers that listen on these ports.
pub fn url_of(ports: impl IntoIterator<Item = u16>, parameters: &str) -> String {
    let hosts: Vec<_> = ports.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis-quorum://{}/?{parameters}", hosts.join(","))
}
