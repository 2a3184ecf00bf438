//! A TCP proxy that understands the Redis protocol, and misbehaves as it is told.
//!
//! TCP never loses or swaps bytes of a connection that lives. So a request that is dropped, or a reply that
//! is swallowed, makes the connection a black hole from there on, as a network would: it never answers
//! again, and only a new connection does.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use stanchion::store::redis::script::SCRIPTS;

use crate::RedisServer;

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
    /// The reply is replaced by these bytes. A SUBSCRIBE is answered so without the server.
    Rewrite(Vec<u8>),
}

/// How the bytes to the client flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Lose published messages; confirmations of subscriptions pass.
    pub drop_messages: bool,
    /// Send everything in both directions in pieces of one byte, with this pause in between.
    pub sliced: Option<Duration>,
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
    upstream: u16,
    closed: AtomicBool,
    refuses: AtomicBool,
    rules: Mutex<Vec<Rule>>,
    flow: Mutex<Flow>,
    counts: Mutex<HashMap<String, usize>>,
    forwarded: Mutex<HashMap<String, usize>>,
    performed: Mutex<HashMap<String, usize>>,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy in front of the server. The server knows all scripts, so that each verb is one request.
    pub fn start(server: &RedisServer) -> Self {
        let mut raw = server.raw();
        for (_, script) in SCRIPTS.all() {
            let sha: String = redis::cmd("SCRIPT")
                .arg("LOAD")
                .arg(&script.text)
                .query(&mut raw)
                .expect("the script is valid");
            assert_eq!(sha, script.sha);
        }
        Self::to_port(server.port())
    }

    /// A proxy in front of a port of this machine.
    pub fn to_port(upstream: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound listener").port();
        let shared = Arc::new(Shared {
            upstream,
            closed: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            rules: Mutex::default(),
            flow: Mutex::default(),
            counts: Mutex::default(),
            forwarded: Mutex::default(),
            performed: Mutex::default(),
            sockets: Mutex::default(),
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
    pub fn fault(&self, verb: &'static str, times: usize, fault: Fault) {
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
    }

    /// Cuts all connections; new ones are accepted.
    pub fn cut(&self) {
        for socket in locked(&self.shared.sockets).drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether new connections are closed at once.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }

    /// How many requests of a verb have come from clients so far.
    pub fn count(&self, verb: &str) -> usize {
        locked(&self.shared.counts).get(verb).copied().unwrap_or(0)
    }

    /// How many requests of a verb have been passed on to the server so far.
    pub fn forwarded(&self, verb: &str) -> usize {
        locked(&self.shared.forwarded).get(verb).copied().unwrap_or(0)
    }

    /// How many requests of a verb the server has answered so far.
    pub fn performed(&self, verb: &str) -> usize {
        locked(&self.shared.performed).get(verb).copied().unwrap_or(0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.cut();
    }
}

/// What becomes of the next reply of the server.
enum Fate {
    Pass,
    After(Duration),
    Swallow,
    SwallowOne,
    Cut,
    Replace(Vec<u8>),
}

/// The two sockets of a connection, shared by its two threads.
struct Link {
    client: TcpStream,
    server: TcpStream,
    /// For each reply that is due: the verb it answers, and what becomes of it.
    fates: Mutex<VecDeque<(String, Fate)>>,
}

impl Link {
    fn cut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.upstream))?;
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
            locked(&self.sockets).push(socket.try_clone()?);
        }
        let link = Arc::new(Link { client, server, fates: Mutex::default() });
        let (up, down) = ((Arc::clone(self), Arc::clone(&link)), (Arc::clone(self), link));
        thread::spawn(move || {
            let _ = up.0.carry_requests(&up.1);
            up.1.cut();
        });
        thread::spawn(move || {
            let _ = down.0.carry_replies(&down.1);
            down.1.cut();
        });
        Ok(())
    }

    fn carry_requests(&self, link: &Link) -> io::Result<()> {
        let mut reader = BufReader::new(link.client.try_clone()?);
        let mut server = link.server.try_clone()?;
        let mut is_deaf = false;
        loop {
            let (raw, args) = read_request(&mut reader)?;
            let incoming = Incoming { verb: verb_of(&args), args };
            *locked(&self.counts).entry(incoming.verb.clone()).or_default() += 1;
            if is_deaf {
                continue;
            }
            let fault = self.fault_for(&incoming);
            match &fault {
                Some(Fault::Drop) => {
                    is_deaf = true;
                    continue;
                }
                Some(Fault::CutBefore) => return Ok(()),
                Some(Fault::DelayRequest(time)) => thread::sleep(*time),
                Some(Fault::Rewrite(bytes)) if incoming.verb == "SUBSCRIBE" => {
                    link.client.try_clone()?.write_all(bytes)?;
                    continue;
                }
                _ => {}
            }
            let is_duplicated = fault == Some(Fault::Duplicate);
            let verb = incoming.verb.clone();
            // A confirmed subscription is answered by a push, which no fate waits for.
            if incoming.verb != "SUBSCRIBE" {
                let mut fates = locked(&link.fates);
                let fate = match fault {
                    Some(Fault::SwallowReply) => Fate::Swallow,
                    Some(Fault::DelayReply(time)) => Fate::After(time),
                    Some(Fault::CutAfter) => Fate::Cut,
                    Some(Fault::Rewrite(bytes)) => Fate::Replace(bytes),
                    _ => Fate::Pass,
                };
                fates.push_back((incoming.verb.clone(), fate));
                if is_duplicated {
                    fates.push_back((incoming.verb, Fate::SwallowOne));
                }
            }
            for _ in 0..=usize::from(is_duplicated) {
                self.send(&mut server, &raw)?;
                *locked(&self.forwarded).entry(verb.clone()).or_default() += 1;
            }
        }
    }

    fn carry_replies(&self, link: &Link) -> io::Result<()> {
        let mut reader = BufReader::new(link.server.try_clone()?);
        let mut client = link.client.try_clone()?;
        let mut is_mute = false;
        loop {
            let mut raw = Vec::new();
            read_frame(&mut reader, &mut raw)?;
            if raw.first() == Some(&b'>') {
                let is_message = raw.windows(9).take(16).any(|part| part == b"\r\nmessage");
                let is_dropped = is_message && locked(&self.flow).drop_messages;
                if !is_mute && !is_dropped {
                    self.send(&mut client, &raw)?;
                }
                continue;
            }
            let (verb, fate) = locked(&link.fates).pop_front().unwrap_or((String::new(), Fate::Pass));
            *locked(&self.performed).entry(verb).or_default() += 1;
            match fate {
                Fate::Pass => {}
                Fate::After(time) => thread::sleep(time),
                Fate::Swallow => is_mute = true,
                Fate::SwallowOne => continue,
                Fate::Cut => return Ok(()),
                Fate::Replace(bytes) => raw = bytes,
            }
            if !is_mute {
                self.send(&mut client, &raw)?;
            }
        }
    }

    /// The fault of the first rule that matches; it is used up by one.
    fn fault_for(&self, incoming: &Incoming) -> Option<Fault> {
        let mut rules = locked(&self.rules);
        let rule = rules.iter_mut().find(|rule| rule.left > 0 && (rule.matches)(incoming))?;
        rule.left -= 1;
        Some(rule.fault.clone())
    }

    fn send(&self, to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        let Some(pause) = locked(&self.flow).sliced else { return to.write_all(bytes) };
        for byte in bytes {
            to.write_all(std::slice::from_ref(byte))?;
            thread::sleep(pause);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// The verb of a script, or the command.
fn verb_of(args: &[Vec<u8>]) -> String {
    let text = |index: usize| args.get(index).map(|arg| String::from_utf8_lossy(arg));
    let command = text(0).unwrap_or_default().to_uppercase();
    let script = text(1).unwrap_or_default();
    let known = SCRIPTS.all().into_iter().find(|(_, known)| match &*command {
        "EVALSHA" => known.sha == script,
        "EVAL" => known.text == script,
        _ => false,
    });
    known.map_or(command, |(verb, _)| verb.to_owned())
}

/// Reads an array of bulk strings; returns it as it came, and taken apart.
fn read_request(reader: &mut impl BufRead) -> io::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut raw = Vec::new();
    let count = read_line(reader, &mut raw)?;
    let mut args = Vec::new();
    for _ in 0..number(&count)? {
        let length = read_line(reader, &mut raw)?;
        let body = read_body(reader, &mut raw, number(&length)?)?;
        args.push(body);
    }
    Ok((raw, args))
}

/// Reads one reply or push of RESP2 or RESP3.
fn read_frame(reader: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<()> {
    let line = read_line(reader, raw)?;
    let parts = match line.first() {
        Some(b'$' | b'=' | b'!') => {
            if !line.starts_with(b"$-") {
                read_body(reader, raw, number(&line)?)?;
            }
            0
        }
        Some(b'*' | b'~' | b'>') if line.get(1) != Some(&b'-') => number(&line)?,
        Some(b'%') => 2 * number(&line)?,
        Some(b'|') => 2 * number(&line)? + 1,
        _ => 0,
    };
    for _ in 0..parts {
        read_frame(reader, raw)?;
    }
    Ok(())
}

/// Reads a line, and returns it without its end.
fn read_line(reader: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let start = raw.len();
    if reader.read_until(b'\n', raw)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(raw[start..].trim_ascii_end().to_vec())
}

fn read_body(reader: &mut impl BufRead, raw: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length + 2];
    reader.read_exact(&mut body)?;
    raw.extend_from_slice(&body);
    body.truncate(length);
    Ok(body)
}

/// The number after the type of a line.
fn number(line: &[u8]) -> io::Result<usize> {
    let text = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::shared;

    /// A connection through the proxy that does not wait long for replies.
    fn raw(proxy: &Proxy) -> redis::Connection {
        let raw = redis::Client::open(proxy.url()).unwrap().get_connection().unwrap();
        raw.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        raw
    }

    fn incr(raw: &mut redis::Connection, key: &str) -> redis::RedisResult<i64> {
        redis::cmd("INCR").arg(key).query(raw)
    }

    #[test]
    fn without_rules_it_only_counts() {
        let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
        assert_eq!(incr(&mut raw(&proxy), &key).unwrap(), 1);
        assert_eq!(proxy.count("INCR"), 1);
    }

    #[test]
    fn each_fault_does_what_it_says() {
        // Whether the client gets an answer, and how often the server performed the request.
        let rows = [
            (Fault::Drop, false, 0),
            (Fault::SwallowReply, false, 1),
            (Fault::Duplicate, true, 2),
            (Fault::CutBefore, false, 0),
            (Fault::CutAfter, false, 1),
            (Fault::Rewrite(b"+what\r\n".to_vec()), false, 1),
            (Fault::DelayRequest(Duration::from_millis(20)), true, 1),
            (Fault::DelayReply(Duration::from_millis(20)), true, 1),
        ];
        for (fault, is_answered, performed) in rows {
            let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
            proxy.fault("INCR", 1, fault.clone());
            let begun = Instant::now();
            let answer = incr(&mut raw(&proxy), &key);
            assert_eq!(answer.is_ok(), is_answered, "{fault:?}: {answer:?}");
            assert_eq!(proxy.faults_left(), 0);
            if let Fault::DelayRequest(time) | Fault::DelayReply(time) = fault {
                assert!(begun.elapsed() >= time);
            }
            let get = || shared().cli(&["GET", &key]).parse().unwrap_or(0);
            crate::wait::eventually(crate::wait::SOON, || get() == performed);
            assert_eq!(incr(&mut raw(&proxy), &key).unwrap(), performed + 1, "{fault:?}");
        }
    }

    #[test]
    fn after_a_lost_reply_the_connection_is_a_black_hole() {
        let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
        proxy.fault("INCR", 1, Fault::SwallowReply);
        let mut raw = raw(&proxy);
        incr(&mut raw, &key).unwrap_err();
        redis::cmd("PING").query::<String>(&mut raw).unwrap_err();
    }

    #[test]
    fn scripts_are_counted_by_their_verb() {
        let proxy = Proxy::start(shared());
        let mut raw = raw(&proxy);
        for (verb, script) in SCRIPTS.all() {
            // Without keys it fails, which does not matter here.
            let _ = redis::cmd("EVALSHA").arg(&script.sha).arg(0).query::<redis::Value>(&mut raw);
            let _ = redis::cmd("EVAL").arg(&script.text).arg(0).query::<redis::Value>(&mut raw);
            assert_eq!(proxy.count(verb), 2, "{verb}");
        }
    }

    #[test]
    fn slices_arrive_whole() {
        let (proxy, key) = (Proxy::start(shared()), crate::unique("proxy"));
        let mut raw = raw(&proxy);
        proxy.flow(Flow { sliced: Some(Duration::ZERO), ..Flow::default() });
        assert_eq!(incr(&mut raw, &key).unwrap(), 1);
    }
}
