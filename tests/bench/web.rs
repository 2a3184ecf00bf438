//! What the pages of the dashboard take with a million tasks and 10,000 locks, against a few of each; and the longest command that
//! they make of the server.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stanchion::blocking::{Client, Lease};
use stanchion::{LockOptions, Task};
use stanchion_tests::redis_server::RedisServer;

use crate::report::{Report, percentile};

const QUEUES: usize = 10;
const TASKS: usize = 1_000_000;
const LOCKS: usize = 10_000;
const FEW: usize = 100;
const ROUNDS: usize = 40;
/// A lock that is not renewed is held for longer than this takes.
const HELD: Duration = Duration::from_secs(3_600);
const PAGES: [(&str, &str); 6] = [
    ("first page", "/"),
    ("queue", "/queues/q0"),
    ("tasks", "/queues/q0/tasks"),
    ("locks", "/locks"),
    ("limiters", "/limiters"),
    ("search", "/search?q=t1"),
];

/// A store with so much in it, and a dashboard.
struct Place {
    child: Child,
    address: String,
    _client: Client,
    _leases: Vec<Lease>,
}

pub fn pages(server: &RedisServer, report: &mut Report) {
    report.section("redis: pages of the dashboard, a million tasks and 10,000 locks against 100 of each");
    let program = env::current_exe().unwrap().with_file_name("../stanchion");
    if !program.exists() {
        println!("not measured: there is no {}; cargo build --release -p stanchion-cli", program.display());
        return;
    }
    let mut slow = Connection::open(server);
    let few = Place::new(&program, &server.fresh_db(), FEW, FEW);
    let url = server.fresh_db();
    let (client, leases) = fill(&url, TASKS, LOCKS);
    slow.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "1000"]);
    slow.ask(&["SLOWLOG", "RESET"]);
    let begun = Instant::now();
    let many = Place::start(&program, &url, client, leases);
    many.get("/");
    report.note("redis first page, from the start of the program", millis(begun.elapsed()), "ms");
    for (name, path) in PAGES {
        let mut times = (0..ROUNDS).map(|_| (many.get(path), few.get(path))).unzip::<_, _, Vec<_>, Vec<_>>();
        let (ours, least) = (percentile(&mut times.0, 0.5), percentile(&mut times.1, 0.5));
        report.compare(&format!("redis {name}, p50"), millis(ours), millis(least), "ms");
        report.note(
            &format!("redis {name}, longest of {ROUNDS}"),
            millis(percentile(&mut times.0, 1.0)),
            "ms",
        );
    }
    let slowest = slow.slowest();
    report.note("redis longest command of the server", slowest, "ms");
    slow.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "10000"]);
}

fn fill(url: &str, tasks: usize, locks: usize) -> (Client, Vec<Lease>) {
    let client = Client::open(url).unwrap();
    for queue in 0..QUEUES {
        let queue = client.queue(&format!("q{queue}"));
        for first in (0..tasks / QUEUES).step_by(1_000) {
            let some =
                (first..(first + 1_000).min(tasks / QUEUES)).map(|number| Task::new(format!("t{number}")));
            assert!(queue.enqueue_many(some).unwrap().iter().all(Result::is_ok));
        }
    }
    let options = || LockOptions::new().ttl(HELD).renew(false);
    let hold = |number| client.lock(&format!("lock:{number}")).acquire(options()).unwrap();
    let leases = (0..locks).map(hold).collect();
    (client, leases)
}

impl Place {
    fn new(program: &std::path::Path, url: &str, tasks: usize, locks: usize) -> Self {
        let (client, leases) = fill(url, tasks, locks);
        Self::start(program, url, client, leases)
    }

    fn start(program: &std::path::Path, url: &str, client: Client, leases: Vec<Lease>) -> Self {
        let mut child = Command::new(program)
            .args(["web", "--listen", "127.0.0.1:0", "--url", url])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").unwrap().1.trim_end().trim_end_matches('/').to_owned();
        Self { child, address, _client: client, _leases: leases }
    }

    fn get(&self, path: &str) -> Duration {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        begun.elapsed()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks the server itself.
struct Connection(redis::Connection);

impl Connection {
    fn open(server: &RedisServer) -> Self {
        Self(redis::Client::open(server.url()).unwrap().get_connection().unwrap())
    }

    fn ask(&mut self, words: &[&str]) {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).exec(&mut self.0).unwrap();
    }

    /// What the longest command took that took over a millisecond, in milliseconds.
    fn slowest(&mut self) -> f64 {
        let entries: Vec<Vec<redis::Value>> =
            redis::cmd("SLOWLOG").arg("GET").arg(1_000).query(&mut self.0).unwrap();
        let micros =
            entries.into_iter().map(|entry| redis::from_redis_value::<u64>(entry[2].clone()).unwrap());
        micros.max().unwrap_or(0) as f64 / 1_000.0
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
