//! What ours is compared with: the same work with bare clients, and simpler locks.

use std::thread;
use std::time::Duration;

use redis::{Commands, Script};

/// Compare-and-delete, as most Redis locks release.
pub fn compare_and_delete() -> Script {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
    )
}

/// One pair of the bare lock: SET NX PX, then compare-and-delete.
pub fn bare_pair(connection: &mut redis::Connection, script: &Script, key: &str, token: &str) {
    let set: Option<String> =
        redis::cmd("SET").arg(key).arg(token).arg("NX").arg("PX").arg(30_000).query(connection).unwrap();
    assert!(set.is_some());
    let deleted: i32 = script.key(key).arg(token).invoke(connection).unwrap();
    assert_eq!(deleted, 1);
}

/// The calls that a grant with a fence and a record cannot do without, and nothing else: how much of our
/// time is theirs.
pub fn same_calls() -> (Script, Script) {
    let take = "local time = redis.call('TIME') local meta = redis.call('HMGET', KEYS[2], 'fence', 'calm_until') \
                redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) \
                redis.call('HSET', KEYS[2], 'fence', ARGV[2], 'owner', 'bench', 'since', time[1]) return 1";
    let give = "if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('EXISTS', KEYS[2]) == 0 then \
                return redis.call('DEL', KEYS[1]) end return 0";
    (Script::new(take), Script::new(give))
}

/// One pair of those.
pub fn same_calls_pair(connection: &mut redis::Connection, take: &Script, give: &Script) {
    let token = "0123456789abcdef0123456789abcdef";
    let taken: i32 = take
        .key("bench:calls")
        .key("bench:meta")
        .arg(token)
        .arg(1_795_180_435_756_652_u64)
        .invoke(connection)
        .unwrap();
    let given: i32 = give.key("bench:calls").key("bench:line").arg(token).invoke(connection).unwrap();
    assert_eq!((taken, given), (1, 1));
}

/// A lock whose token lies in a list: waiters block in BLPOP.
pub struct BlpopLock {
    connection: redis::Connection,
    key: String,
}

impl BlpopLock {
    pub fn new(url: &str, name: &str) -> Self {
        Self { connection: connect(url), key: format!("blpop:{name}") }
    }

    pub fn prepare(url: &str, name: &str) {
        let _: () = connect(url).rpush(format!("blpop:{name}"), "token").unwrap();
    }

    pub fn acquire(&mut self) {
        let popped: Option<(String, String)> = self.connection.blpop(&self.key, 10.0).unwrap();
        assert!(popped.is_some());
    }

    pub fn release(&mut self) {
        let _: () = self.connection.rpush(&self.key, "token").unwrap();
    }
}

/// A lock that is polled for: SET NX PX every few milliseconds.
pub struct PollingLock {
    connection: redis::Connection,
    script: Script,
    key: String,
    token: String,
}

/// How often the polling lock is polled for; usual clients poll ten times less often.
const POLL_EVERY: Duration = Duration::from_millis(5);

impl PollingLock {
    pub fn new(url: &str, name: &str) -> Self {
        let token = fastrand::u64(..).to_string();
        Self { connection: connect(url), script: compare_and_delete(), key: format!("poll:{name}"), token }
    }

    pub fn acquire(&mut self) {
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg(&self.token).arg("NX").arg("PX").arg(30_000);
        while set.query::<Option<String>>(&mut self.connection).unwrap().is_none() {
            thread::sleep(POLL_EVERY);
        }
    }

    pub fn release(&mut self) {
        let _: i32 = self.script.key(&self.key).arg(&self.token).invoke(&mut self.connection).unwrap();
    }
}

pub fn connect(url: &str) -> redis::Connection {
    redis::Client::open(url).unwrap().get_connection().unwrap()
}
