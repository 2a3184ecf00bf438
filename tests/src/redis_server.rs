//! A real Redis server for tests: in a directory and on a port of its own, gone when it is dropped, and
//! killed by the kernel when the test process ends in whatever way.

use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::{SOON, eventually, feel_the_pulse};

/// How long a server may take to answer its first PING.
const START_WITHIN: Duration = Duration::from_secs(15);
/// How long a raw command may take.
const RAW_TIMEOUT: Duration = Duration::from_secs(10);
/// How often another port is tried when somebody else took it first.
const PORT_ATTEMPTS: usize = 8;
/// How many databases the shared server has: one for each test that wants an empty one.
const DATABASES: u32 = 4_000;
/// Directories of servers: this, the test process, a number.
const DIR_PREFIX: &str = "stanchion-redis-";

/// A running Redis server. See [`RedisServer::start`].
#[derive(Debug)]
pub struct RedisServer {
    dir: PathBuf,
    port: u16,
    tls_port: Option<u16>,
    args: Vec<String>,
    child: Mutex<Option<Child>>,
}

/// What a server is started with.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it is started"]
pub struct RedisServerBuilder {
    args: Vec<String>,
    users: Vec<String>,
    appendonly: bool,
    tls: bool,
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
        command.args(["--pdeathsig", "KILL", "redis-server"]);
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

impl RedisServerBuilder {
    /// One more command-line option with its value, such as `("--maxmemory", "2mb")`.
    pub fn arg(mut self, option: &str, value: &str) -> Self {
        self.args.extend([option.to_owned(), value.to_owned()]);
        self
    }

    /// Keeps an append-only file, synced at every write: data survive a restart.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// Listens on a TLS port too, with fresh certificates.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
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
        sweep();
        let dir = fresh_dir();
        let mut args = self.args;
        args.extend(["--appendonly".into(), if self.appendonly { "yes" } else { "no" }.into()]);
        if self.appendonly {
            args.extend(["--appendfsync".into(), "always".into()]);
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
            make_certificates(&dir);
        }
        let mut server = RedisServer { dir, port: 0, tls_port: None, args, child: Mutex::default() };
        for _ in 0..PORT_ATTEMPTS {
            server.port = free_port();
            server.tls_port = self.tls.then(free_port);
            match server.launch() {
                Ok(()) => return server,
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("redis-server ended at once: {log}"),
            }
        }
        panic!("no free port in {PORT_ATTEMPTS} attempts");
    }
}

const INSTALL: &str =
    "run `make deps`, or apt-get install redis-server (with redis-tools, openssl, util-linux)";

/// Starts a process from a thread that lives as long as this process: the kernel kills the child when the
/// *thread* that started it ends, and a test's thread ends with its test.
pub(crate) fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (send, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(send)
    });
    check_installed();
    let (reply, child) = mpsc::channel();
    let send = spawner.lock().unwrap_or_else(PoisonError::into_inner).clone();
    send.send((command, reply)).expect("the spawner never ends");
    child.recv().expect("the spawner answers").unwrap_or_else(|error| panic!("setpriv: {error}; {INSTALL}"))
}

/// Without this, a missing server would show only as a setpriv that ends at once.
fn check_installed() {
    static CHECKED: OnceLock<()> = OnceLock::new();
    CHECKED.get_or_init(|| match Command::new("redis-server").arg("--version").output() {
        Ok(_) => {}
        Err(error) if error.kind() == IoErrorKind::NotFound => {
            panic!("redis-server is not installed; {INSTALL}")
        }
        Err(error) => panic!("redis-server: {error}; {INSTALL}"),
    });
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).expect("a process id");
    // It may have ended by itself.
    let _ = kill(Pid::from_raw(pid), signal);
}

/// A port that is free now. Somebody else may take it before the server does.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound listener").port()
}

pub(crate) fn fresh_dir() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Short: a socket's path has at most 107 bytes.
    let dir = std::env::temp_dir().join(format!("{DIR_PREFIX}{}-{number}", std::process::id()));
    fs::create_dir(&dir).expect("the temporary directory is writable");
    dir
}

/// Removes directories of test processes that are gone: a shared server's, or a killed test's.
fn sweep() {
    static SWEPT: OnceLock<()> = OnceLock::new();
    SWEPT.get_or_init(|| {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(DIR_PREFIX)?.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    });
}

/// An authority, and a server's and a client's certificate signed by it.
fn make_certificates(dir: &Path) {
    let days = ["-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let new_key = |name: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(dir).args(["req", "-x509"]).args(days);
        command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.crt")]);
        command
    };
    run(new_key("ca").args(["-subj", "/CN=Stanchion test CA"]));
    for (name, san) in [("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")] {
        run(new_key(name).args(["-subj", &format!("/CN={name}"), "-CA", "ca.crt", "-CAkey", "ca.key"]).args(
            ["-addext", &format!("subjectAltName={san}"), "-addext", "basicConstraints=critical,CA:FALSE"],
        ));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("openssl: {error}; {INSTALL}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(server: &RedisServer) -> String {
        redis::cmd("PING").query(&mut server.raw()).unwrap()
    }

    #[test]
    fn it_answers_on_port_and_socket_and_goes_away_when_dropped() {
        let server = RedisServer::start();
        assert_eq!(ping(&server), "PONG");
        assert_eq!(server.cli(&["PING"]), "PONG");
        assert!(server.socket().exists());
        let (pid, dir) = (server.pid(), server.dir().to_owned());
        drop(server);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(!dir.exists());
    }

    #[test]
    fn it_survives_the_thread_that_started_it() {
        let server = thread::spawn(RedisServer::start).join().unwrap();
        assert_eq!(ping(&server), "PONG");
    }

    #[test]
    fn it_comes_back_empty_or_with_its_data() {
        for (server, expected) in
            [(RedisServer::start(), ""), (RedisServer::builder().appendonly().start(), "1")]
        {
            server.cli(&["SET", "a", "1"]);
            let pid = server.pid();
            server.kill9();
            assert!(server.try_raw().is_err());
            server.start_again();
            assert_ne!(server.pid(), pid);
            assert_eq!(server.cli(&["GET", "a"]), expected);
            server.restart();
            assert_eq!(server.cli(&["GET", "a"]), expected);
        }
    }

    #[test]
    fn a_frozen_server_answers_after_it_goes_on() {
        let server = RedisServer::start();
        let raw = server.raw();
        raw.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        server.stop_signal();
        let mut raw = raw;
        assert!(redis::cmd("PING").query::<String>(&mut raw).unwrap_err().is_timeout());
        server.cont_signal();
        assert_eq!(ping(&server), "PONG");
    }

    #[test]
    fn users_have_the_rights_they_were_given() {
        let server = RedisServer::builder().user("app", "on >c4n4ry-pa55w0rd ~a* +get +ping").start();
        let client = redis::Client::open(server.url_as("app", "c4n4ry-pa55w0rd")).unwrap();
        let mut raw = client.get_connection().unwrap();
        assert_eq!(redis::cmd("GET").arg("a").query::<Option<String>>(&mut raw).unwrap(), None);
        let error = redis::cmd("GET").arg("b").query::<Option<String>>(&mut raw).unwrap_err();
        assert_eq!(error.code(), Some("NOPERM"));
    }

    #[test]
    fn the_tls_port_speaks_tls_with_a_certificate_of_the_ca() {
        let server = RedisServer::builder().tls().start();
        let port = server.tls_port().to_string();
        let ca = server.ca_file();
        let answer = Command::new("redis-cli")
            .args(["--tls", "-h", "localhost", "-p", &port, "--cacert"])
            .arg(ca)
            .arg("PING")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "PONG", "{answer:?}");
    }
}
