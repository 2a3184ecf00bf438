//! What a server is started with.

use std::fs;
use std::net::TcpListener;
use std::sync::Mutex;

use super::{RedisServer, certificates, folder};
use crate::wait::feel_the_pulse;

/// How often another port is tried when somebody else took it first.
const PORT_ATTEMPTS: usize = 8;

/// What a server is started with.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it is started"]
pub struct RedisServerBuilder {
    args: Vec<String>,
    users: Vec<String>,
    /// The value of `appendfsync`.
    appendonly: Option<&'static str>,
    tls: bool,
    bus: bool,
}

impl RedisServerBuilder {
    /// One more command-line option with its value, such as `("--maxmemory", "2mb")`.
    pub fn arg(mut self, option: &str, value: &str) -> Self {
        self.args.extend([option.to_owned(), value.to_owned()]);
        self
    }

    /// Keeps an append-only file, synced at every write: data survive a restart.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = Some("always");
        self
    }

    /// Keeps an append-only file that nobody syncs: data survive the server's end, not the machine's. A busy disk holds up
    /// no command then.
    pub fn appendonly_unsynced(mut self) -> Self {
        self.appendonly = Some("no");
        self
    }

    /// Listens on a TLS port too, with fresh certificates.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A node of a cluster, with a bus port of its own: the usual one, ten thousand above, may be taken or none at all.
    pub fn cluster(mut self) -> Self {
        self.bus = true;
        self.arg("--cluster-enabled", "yes")
    }

    /// A user with an ACL rule, such as `("app", "on >c4n4ry-pa55w0rd ~Lock:* +get")`. Once there is any, the default
    /// user keeps all rights and no password, unless it is given here too.
    pub fn user(mut self, name: &str, rule: &str) -> Self {
        self.users.push(format!("user {name} {rule}\n"));
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> RedisServer {
        feel_the_pulse();
        folder::sweep();
        let dir = folder::fresh();
        let mut args = self.args;
        args.extend(["--appendonly".into(), if self.appendonly.is_some() { "yes" } else { "no" }.into()]);
        if let Some(fsync) = self.appendonly {
            args.extend(["--appendfsync".into(), fsync.into()]);
        }
        if !self.users.is_empty() {
            let file = dir.join("users.acl");
            let mut text = self.users.concat();
            if !text.contains("user default ") {
                text.push_str("user default on nopass ~* &* +@all\n");
            }
            fs::write(&file, text).expect("the directory is writable");
            args.extend(["--aclfile".into(), file.display().to_string()]);
        }
        if self.tls {
            certificates::make(&dir);
        }
        let mut server =
            RedisServer { dir, port: 0, tls_port: None, bus_port: None, args, child: Mutex::default() };
        for _ in 0..PORT_ATTEMPTS {
            server.port = free_port();
            server.tls_port = self.tls.then(free_port);
            server.bus_port = self.bus.then(free_port);
            match server.launch() {
                Ok(()) => return server,
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("redis-server ended at once: {log}"),
            }
        }
        panic!("no free port in {PORT_ATTEMPTS} attempts");
    }
}

/// A port that is free now. Somebody else may take it before the server does.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound listener").port()
}
