//! How long the records of locks live.

use std::time::Duration;

use stanchion::protocol::CLOCK_MARGIN;
use stanchion::{Client, LockOptions};
use stanchion_tests::RedisServer;

const HOUR: Duration = Duration::from_secs(3_600);

fn life(server: &RedisServer, key: &str) -> Duration {
    Duration::from_millis(server.cli(&["PTTL", key]).parse().unwrap())
}

/// Nothing else is left of a lock that was used once, and that goes.
#[test]
fn the_url_says_how_far_clocks_may_go_back() {
    let server = RedisServer::start();
    for (query, margin) in [("", CLOCK_MARGIN), ("?clock_margin=60", Duration::from_secs(60))] {
        let client = Client::builder(&format!("{}{query}", server.url())).open_blocking().unwrap();
        client.lock("once").acquire(LockOptions::new()).unwrap().release().unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "stanchion:meta:{Lock:once}");
        let left = life(&server, "stanchion:meta:{Lock:once}");
        assert!(
            left > margin + Duration::from_secs(60) && left < margin + Duration::from_secs(161),
            "{left:?}"
        );
        server.cli(&["FLUSHALL"]);
    }
}

/// The number of permits that are held is in it.
#[test]
fn a_shorter_lease_does_not_shorten_the_record_of_a_longer_one() {
    let server = RedisServer::start();
    let client = Client::builder(&server.url()).open_blocking().unwrap();
    let semaphore = client.semaphore("a", 2);
    let long = semaphore.acquire(LockOptions::new().ttl(HOUR)).unwrap();
    let meta = server.cli(&["KEYS", "stanchion:*meta:*"]);
    assert!(life(&server, &meta) > HOUR + CLOCK_MARGIN);
    // A minute later.
    server.cli(&["HSET", &meta, "kept_until", "0"]);
    let short = semaphore.acquire(LockOptions::new().ttl(Duration::from_secs(30))).unwrap();
    assert!(life(&server, &meta) > HOUR + CLOCK_MARGIN);
    short.extend(Duration::from_secs(40)).unwrap();
    assert!(life(&server, &meta) > HOUR + CLOCK_MARGIN);
    short.release().unwrap();
    long.release().unwrap();
}

/// Whoever held it may come back until then, and is told that it was broken.
#[test]
fn the_record_of_a_broken_lease_lives_as_long_as_the_lease_would_have() {
    let server = RedisServer::start();
    let client = Client::builder(&server.url()).open_blocking().unwrap();
    let lease = client.lock("a").acquire(LockOptions::new().ttl(HOUR)).unwrap();
    assert!(client.lock("a").break_lease().unwrap());
    assert!(life(&server, "stanchion:meta:{Lock:a}") > HOUR + CLOCK_MARGIN);
    assert!(lease.release().is_err());
}
