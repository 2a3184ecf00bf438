//! What the server itself takes for a script, without network and client: by its own count (`INFO commandstats`), beside
//! bare scripts with the same calls.

use std::time::Duration;

use redis::Connection;
use stanchion::blocking::Client;
use stanchion::{ErrorKind, LockOptions};
use stanchion_tests::redis_server::RedisServer;

use crate::baseline::{connect, same_calls, same_calls_pair};
use crate::pair::TURNS;
use crate::report::{Report, percentile};

/// Pairs of each side in one turn.
const PAIRS: u32 = 300;

pub fn pairs(server: &RedisServer, report: &mut Report) {
    report.section(
        "redis: the server's time per script of a pair, against the same redis.calls in bare scripts",
    );
    let url = server.url();
    let (client, waiter) = (Client::open(&url).unwrap(), Client::open(&url).unwrap());
    open_channel(&client, &waiter);
    let (mut connection, mut counter) = (connect(&url), connect(&url));
    let (take, give) = same_calls();
    let (first, second) = (client.lock("bench:cost"), waiter.lock("bench:cost-waiter"));
    let mut samples: [Vec<Duration>; 3] = Default::default();
    for _ in 0..TURNS {
        let pair = |lock: &stanchion::blocking::Lock| {
            lock.acquire(LockOptions::new()).unwrap().release().unwrap();
        };
        samples[0].push(per_script(&mut counter, || pair(&first)));
        samples[1].push(per_script(&mut counter, || same_calls_pair(&mut connection, &take, &give)));
        samples[2].push(per_script(&mut counter, || pair(&second)));
    }
    let [ours, bare, waiter] = samples.map(|mut turns| percentile(&mut turns, 0.5).as_secs_f64() * 1e6);
    report.compare("redis script of a pair", ours, bare, "us");
    report.compare("the same of a client that has waited before", waiter, bare, "us");
}

/// Whoever waits listens for hints from then on, and gets in line with its first request.
fn open_channel(client: &Client, waiter: &Client) {
    let held = client.lock("bench:held").acquire(LockOptions::new()).unwrap();
    let late = waiter.lock("bench:held").acquire(LockOptions::new().wait(Duration::from_millis(100)));
    assert_eq!(late.unwrap_err().kind(), ErrorKind::LockTimeout);
    held.release().unwrap();
}

/// The server's time per script of these pairs.
fn per_script(counter: &mut Connection, mut pair: impl FnMut()) -> Duration {
    // The first one finds what the other side, or another bench, has left.
    pair();
    redis::cmd("CONFIG").arg("RESETSTAT").exec(counter).unwrap();
    (0..PAIRS).for_each(|_| pair());
    let stats: String = redis::cmd("INFO").arg("commandstats").query(counter).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap();
    let micros = line.split(',').find_map(|field| field.strip_prefix("usec=")).unwrap();
    Duration::from_micros(micros.parse().unwrap()) / (2 * PAIRS)
}
