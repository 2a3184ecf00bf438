//! A TCP proxy that understands the Redis protocol, and misbehaves as it is told.
//!
//! TCP never loses or swaps bytes of a connection that lives. So a request that is dropped, or a reply that
//! is swallowed, makes the connection a black hole from there on, as a network would: it never answers
//! again, and only a new connection does.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use stanchion::store::redis::script::SCRIPTS;

use crate::RedisServer;

mod link;
#[cfg(test)]
mod tests;
mod verb;
mod wire;

use link::Link;

/// What happens to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the server, nor does anything after it on this connection.
    Drop,
    /// The server performs it; the reply is lost, and all later ones of this connection.
    SwallowReply,
    /// It reaches the server only after this time.
    DelayRequest(Duration),
    /// The reply comes after this time.
    DelayReply(Duration),
    /// It reaches the server twice in a row; the second reply is lost.
    Duplicate,
    /// The connection is cut before it reaches the server.
    CutBefore,
    /// The server performs it, and the connection is cut instead of a reply.
    CutAfter,
    /// The connection is cut before it reaches the server, which performs it after this time nevertheless: later than
    /// what is sent on the next connection.
    CutAndLate(Duration),
    /// The reply is replaced by these bytes. A SUBSCRIBE is answered so without the server.
    Rewrite(Vec<u8>),
    /// It is answered by these bytes, and never reaches the server.
    Refuse(Vec<u8>),
}

/// A half of each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// What clients ask.
    Requests,
    /// What the server answers.
    Replies,
    /// All of it.
    Both,
}

/// How bytes flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Lose published messages; confirmations of subscriptions pass.
    pub drop_messages: bool,
    /// Send everything in both directions in pieces of one byte, with this pause in between.
    pub sliced: Option<Duration>,
    /// Hold this half back until the flow changes: connections stay open, and say nothing.
    pub held: Option<Half>,
}

impl Flow {
    fn holds(&self, half: Half) -> bool {
        self.held.is_some_and(|held| held == half || held == Half::Both)
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Incoming {
    /// A script's verb (`acquire`, `release`...), or the command in capitals (`SUBSCRIBE`).
    pub verb: String,
    /// All of the request, the command first.
    pub args: Vec<Vec<u8>>,
}

/// A running proxy. Dropping it cuts all connections.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

type Predicate = Box<dyn Fn(&Incoming) -> bool + Send>;

struct Rule {
    matches: Predicate,
    left: usize,
    fault: Fault,
}

struct Shared {
    upstream: String,
    closed: AtomicBool,
    refuses: AtomicBool,
    rules: Mutex<Vec<Rule>>,
    flow: Mutex<Flow>,
    flow_changed: Condvar,
    counts: Mutex<HashMap<String, usize>>,
    forwarded: Mutex<HashMap<String, usize>>,
    late: Mutex<HashMap<String, usize>>,
    performed: Mutex<HashMap<String, usize>>,
    links: Mutex<Vec<Weak<Link>>>,
}

impl Proxy {
    /// A proxy in front of the server. The server knows all scripts, so that each verb is one request.
    pub fn start(server: &RedisServer) -> Self {
        load_scripts(&mut server.raw());
        Self::to_port(server.port())
    }

    /// A proxy in front of a port of this machine.
    pub fn to_port(upstream: u16) -> Self {
        Self::to_address(format!("127.0.0.1:{upstream}"))
    }

    /// A proxy in front of a host and port.
    pub fn to_address(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound listener").port();
        let shared = Arc::new(Shared {
            upstream,
            closed: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            rules: Mutex::default(),
            flow: Mutex::default(),
            flow_changed: Condvar::new(),
            counts: Mutex::default(),
            forwarded: Mutex::default(),
            late: Mutex::default(),
            performed: Mutex::default(),
            links: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                if !accepting.refuses.load(Ordering::SeqCst) {
                    // A server that is down shows as a connection that ends at once.
                    let _ = accepting.connect(client);
                }
            }
        });
        Self { shared, port }
    }

    /// The URL of the server behind the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port the proxy listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Does this to the next `times` requests of a verb. Rules are tried in the order they were given.
    pub fn fault(&self, verb: &str, times: usize, fault: Fault) {
        let verb = verb.to_owned();
        self.fault_where(times, fault, move |incoming| incoming.verb == verb);
    }

    /// Does this to the next `times` requests that match.
    pub fn fault_where(
        &self,
        times: usize,
        fault: Fault,
        matches: impl Fn(&Incoming) -> bool + Send + 'static,
    ) {
        locked(&self.shared.rules).push(Rule { matches: Box::new(matches), left: times, fault });
    }

    /// How many faults were ordered and have not come to pass.
    pub fn faults_left(&self) -> usize {
        locked(&self.shared.rules).iter().map(|rule| rule.left).sum()
    }

    /// Forgets all rules, and lets bytes flow as usual. Connections that are black holes stay so.
    pub fn behave(&self) {
        locked(&self.shared.rules).clear();
        self.flow(Flow::default());
    }

    /// Changes how bytes flow.
    pub fn flow(&self, flow: Flow) {
        *locked(&self.shared.flow) = flow;
        self.shared.flow_changed.notify_all();
    }

    /// Cuts all connections; new ones are accepted.
    pub fn cut(&self) {
        for link in locked(&self.shared.links).drain(..).filter_map(|link| link.upgrade()) {
            link.cut();
        }
    }

    /// Whether new connections are closed at once.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }

    /// How many requests of each verb have come from clients so far.
    pub fn counts(&self) -> HashMap<String, usize> {
        locked(&self.shared.counts).clone()
    }

    /// How many requests of a verb have come from clients so far.
    pub fn count(&self, verb: &str) -> usize {
        locked(&self.shared.counts).get(verb).copied().unwrap_or(0)
    }

    /// How many requests of a verb have been passed on to the server so far.
    pub fn forwarded(&self, verb: &str) -> usize {
        locked(&self.shared.forwarded).get(verb).copied().unwrap_or(0)
    }

    /// How many requests of a verb it has performed after their connection was cut.
    pub fn late(&self, verb: &str) -> usize {
        locked(&self.shared.late).get(verb).copied().unwrap_or(0)
    }

    /// How many requests of a verb the server has answered so far.
    pub fn performed(&self, verb: &str) -> usize {
        locked(&self.shared.performed).get(verb).copied().unwrap_or(0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.flow(Flow::default());
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.cut();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// Makes a server know all scripts, so that each verb is one request; also those of another release, from when they were
/// seen first.
pub fn load_scripts(raw: &mut redis::Connection) {
    for (_, script) in SCRIPTS.all() {
        let loading = redis::cmd("SCRIPT").arg("LOAD").arg(&script.text).query::<String>(raw);
        assert_eq!(loading.expect("the script is valid"), script.sha);
    }
    for text in verb::others() {
        let loading = redis::cmd("SCRIPT").arg("LOAD").arg(text).query::<String>(raw);
        loading.expect("a server has run it");
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
