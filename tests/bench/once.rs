//! Names that are used once, such as an invoice's: what they leave on the server, and for how long.

use stanchion::LockOptions;
use stanchion::blocking::Client;
use stanchion_tests::redis_server::RedisServer;

use crate::baseline::connect;
use crate::queue::size::{empty_server, used_memory};
use crate::report::Report;

/// Taken together: it is the number of names that counts here.
const AT_ONCE: usize = 64;
const TIMES: usize = 15_625;
const HOUR_MS: i64 = 3_600_000;
const PAGE: usize = 1_000;

/// A million locks, each taken and given back.
pub fn names(server: &RedisServer, report: &mut Report) {
    let count = TIMES * AT_ONCE;
    report.section(&format!("redis: what {count} names that are used once leave behind"));
    let url = server.url();
    let before = empty_server(&url);
    let client = Client::open(&url).unwrap();
    for time in 0..TIMES {
        let names: Vec<_> = (0..AT_ONCE).map(|number| format!("invoice:{time:05}:{number:02}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        client.multi_lock(&names).acquire(LockOptions::new()).unwrap().release().unwrap();
    }
    let left = used_memory(&url) - before;
    report.note("bytes per name when the last was given back", left / count as f64, "bytes");
    let (longest, later) = an_hour_later(&url);
    report.note("the longest life of what is left", longest as f64 / 60_000.0, "min");
    report.note("bytes of all names an hour later", later as f64, "bytes");
    empty_server(&url);
}

/// The longest life of any key, and how much memory those have that live for over an hour from now. Nobody waits for
/// the hour: the server says when each key goes.
fn an_hour_later(url: &str) -> (i64, u64) {
    let mut connection = connect(url);
    let (mut longest, mut bytes, mut cursor) = (0, 0, 0_u64);
    loop {
        let (next, keys): (u64, Vec<String>) =
            redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(PAGE).query(&mut connection).unwrap();
        let mut lives = redis::pipe();
        keys.iter().for_each(|key| {
            lives.cmd("PTTL").arg(key);
        });
        let lives: Vec<i64> = lives.query(&mut connection).unwrap();
        for (key, life) in keys.iter().zip(lives) {
            // A key without an end lives longest.
            let life = if life == -1 { i64::MAX } else { life };
            longest = longest.max(life);
            if life > HOUR_MS {
                let size: u64 = redis::cmd("MEMORY").arg("USAGE").arg(key).query(&mut connection).unwrap();
                bytes += size;
            }
        }
        cursor = next;
        if cursor == 0 {
            return (longest, bytes);
        }
    }
}
