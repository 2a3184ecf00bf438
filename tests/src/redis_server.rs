//! A real Redis server for tests: in a directory and on a port of its own, gone when it is dropped, and
//! killed by the kernel when the test process ends in whatever way.

pub(crate) mod builder;
mod certificates;
pub(crate) mod folder;
pub(crate) mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::wait::{SOON, eventually};
pub use builder::RedisServerBuilder;
use process::{INSTALL, program, send, spawn};

/// How long a server may take to answer its first PING.
const START_WITHIN: Duration = Duration::from_secs(15);
/// How long a raw command may take.
const RAW_TIMEOUT: Duration = Duration::from_secs(10);
/// How many databases the shared server has: one for each test that wants an empty one.
pub(crate) const DATABASES: u32 = 4_000;

/// A running Redis server. See [`RedisServer::start`].
#[derive(Debug)]
pub struct RedisServer {
    dir: PathBuf,
    port: u16,
    tls_port: Option<u16>,
    bus_port: Option<u16>,
    args: Vec<String>,
    child: Mutex<Option<Child>>,
}

/// The server of this test binary, for tests that do not disturb it: no FLUSHALL, no CONFIG SET, no
/// blocking. Use lock names of your own ([`crate::unique`]).
pub fn shared() -> &'static RedisServer {
    static SHARED: OnceLock<RedisServer> = OnceLock::new();
    SHARED.get_or_init(|| RedisServer::builder().arg("--databases", &DATABASES.to_string()).start())
}

impl RedisServer {
    /// Starts a server with defaults: no persistence, no password.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts a server with options.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// The URL for Stanchion and for the bare crate: TCP without TLS.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The URL of a database that no other test uses: empty, and all keys in it are the test's own. Only the
    /// shared server has enough of them.
    pub fn fresh_db(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        format!("{}{}", self.url(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The URL with a user of the server's.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@127.0.0.1:{}/", self.port)
    }

    /// The URL over TLS; the certificate is for `localhost` and `127.0.0.1`.
    pub fn tls_url(&self) -> String {
        format!("rediss://localhost:{}/", self.tls_port())
    }

    /// The URL over the Unix socket.
    pub fn socket_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("redis.sock")
    }

    /// The plain TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The TLS port; panics unless the server was started with [`RedisServerBuilder::tls`].
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("the server was started without tls()")
    }

    /// The port that other nodes talk to; panics unless the server was started with [`RedisServerBuilder::cluster`].
    pub fn bus_port(&self) -> u16 {
        self.bus_port.expect("the server was started without cluster()")
    }

    /// The server's directory, with its log, socket, append-only file and certificates.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The authority that signed the server's and the client's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// A client certificate and its key.
    pub fn client_cert(&self) -> (PathBuf, PathBuf) {
        (self.dir.join("client.crt"), self.dir.join("client.key"))
    }

    /// The process id; panics if the server is down.
    pub fn pid(&self) -> u32 {
        self.child().as_ref().expect("the server is down").id()
    }

    /// A connection of the bare client crate, as the default user.
    pub fn raw(&self) -> redis::Connection {
        self.try_raw().unwrap_or_else(|error| panic!("no raw connection to port {}: {error}", self.port))
    }

    /// As [`RedisServer::raw`], if the server accepts it now.
    pub fn try_raw(&self) -> redis::RedisResult<redis::Connection> {
        let client = redis::Client::open(self.url())?;
        let connection = client.get_connection_with_timeout(RAW_TIMEOUT)?;
        connection.set_read_timeout(Some(RAW_TIMEOUT))?;
        connection.set_write_timeout(Some(RAW_TIMEOUT))?;
        Ok(connection)
    }

    /// What redis-cli answers; panics if it fails.
    pub fn cli(&self, args: &[&str]) -> String {
        let port = self.port.to_string();
        let output = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &port, "-e"])
            .args(args)
            .output()
            .unwrap_or_else(|error| panic!("redis-cli: {error}; {INSTALL}"));
        let answer = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        assert!(
            output.status.success(),
            "redis-cli {args:?}: {answer} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        answer
    }

    /// Sets a server option while it runs.
    pub fn config_set(&self, option: &str, value: &str) {
        assert_eq!(self.cli(&["CONFIG", "SET", option, value]), "OK");
    }

    /// Stops the server, if it runs, in an orderly way, and starts it again in the same place. Without
    /// `appendonly` it comes back empty.
    pub fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// Starts the server again in the same place after [`RedisServer::kill9`] or [`RedisServer::stop`].
    pub fn start_again(&self) {
        assert!(self.child().is_none(), "the server is up");
        // Its old connections may hold the port for a moment.
        eventually(START_WITHIN, || self.launch().is_ok());
    }

    /// Ends the server by SIGTERM, if it runs.
    pub fn stop(&self) {
        self.end(Signal::SIGTERM);
    }

    /// Ends the server by SIGKILL, if it runs.
    pub fn kill9(&self) {
        self.end(Signal::SIGKILL);
    }

    /// Freezes the server: connections stay open, nothing is answered.
    pub fn stop_signal(&self) {
        self.signal(Signal::SIGSTOP);
        let status = format!("/proc/{}/stat", self.pid());
        // Field 3, after the name in parentheses, is the state.
        eventually(SOON, || fs::read_to_string(&status).is_ok_and(|text| text.contains(") T ")));
    }

    /// Lets a frozen server go on.
    pub fn cont_signal(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    fn end(&self, signal: Signal) {
        if let Some(mut child) = self.child().take() {
            send(child.id(), signal);
            // A stopped process gets SIGTERM only when it goes on.
            send(child.id(), Signal::SIGCONT);
            child.wait().expect("the server is our child");
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the process and waits for its first answer; gives the log if it ends instead.
    fn launch(&self) -> Result<(), String> {
        let mut child = spawn(self.command());
        let give_up = Instant::now() + START_WITHIN;
        loop {
            if self.answers() {
                *self.child() = Some(child);
                return Ok(());
            }
            if child.try_wait().expect("the server is our child").is_some() {
                return Err(self.log());
            }
            if Instant::now() > give_up {
                let _ = child.kill();
                let _ = child.wait();
                panic!("redis-server did not answer within {START_WITHIN:?}: {}", self.log());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the server that listens there is ready, and ours.
    fn answers(&self) -> bool {
        let ready =
            |error: &redis::RedisError| matches!(error.code(), Some("NOAUTH" | "NOPERM" | "WRONGPASS"));
        if !self.socket().exists() {
            return false;
        }
        match self.try_raw() {
            Ok(mut raw) => {
                redis::cmd("PING").query::<String>(&mut raw).map_or_else(|error| ready(&error), |_| true)
            }
            Err(error) => ready(&error) || error.kind() == redis::ErrorKind::AuthenticationFailed,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    fn command(&self) -> Command {
        // Removed first, so that its presence shows that this very process listens.
        let _ = fs::remove_file(self.socket());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program());
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(&self.dir).arg("--logfile").arg(self.dir.join("log"));
        command.args(["--save", "", "--daemonize", "no"]);
        if let Some(port) = self.tls_port {
            command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "optional"]);
            for (option, file) in [("cert", "server.crt"), ("key", "server.key"), ("ca-cert", "ca.crt")] {
                command.arg(format!("--tls-{option}-file")).arg(self.dir.join(file));
            }
        }
        if let Some(port) = self.bus_port {
            command.args(["--cluster-port", &port.to_string()]);
        }
        command.args(&self.args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill9();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests;
