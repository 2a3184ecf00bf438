//! What large payloads cost the server where nobody asks for them.

use std::time::Duration;

use stanchion::blocking::Client;
use stanchion::{ClaimOptions, Task};
use stanchion_tests::redis_server::RedisServer;

use super::size::empty_server;
use crate::baseline::connect;
use crate::report::Report;

const TASKS: usize = 1_000;
const PAYLOAD: usize = 512 << 10;

/// The first claim over a thousand expired tasks of half a megabyte, in the server's time: while it takes, nobody
/// else is served.
pub fn expired(server: &RedisServer, report: &mut Report) {
    report.section(&format!("redis: the first claim over {TASKS} expired tasks of {PAYLOAD} bytes"));
    let url = server.url();
    empty_server(&url);
    let queue = Client::open(&url).unwrap().queue("bench:bytes");
    for number in 0..TASKS {
        let task =
            Task::new(format!("{number}")).payload(vec![b'x'; PAYLOAD]).expires(Duration::from_secs(5));
        queue.enqueue(task).unwrap();
    }
    let last = queue.get(&format!("{}", TASKS - 1)).unwrap().unwrap().expires.unwrap();
    while std::time::SystemTime::now() <= last {
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut raw = connect(&url);
    redis::cmd("CONFIG").arg("SET").arg("slowlog-log-slower-than").arg(0).exec(&mut raw).unwrap();
    redis::cmd("SLOWLOG").arg("RESET").exec(&mut raw).unwrap();
    assert!(queue.claim(ClaimOptions::new()).unwrap().is_empty());
    let entries: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG").arg("GET").arg(20).query(&mut raw).unwrap();
    let took = entries.iter().filter_map(|entry| redis::from_redis_value::<u64>(entry[2].clone()).ok());
    report.note("server time of its slowest script", took.max().unwrap_or_default() as f64 / 1e3, "ms");
    redis::cmd("CONFIG").arg("SET").arg("slowlog-log-slower-than").arg(10_000).exec(&mut raw).unwrap();
    empty_server(&url);
}
