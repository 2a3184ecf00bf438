//! Next to lockers of other programs on the same keys: a fleet can move over one program at a time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod adopt;
mod plain_lockers;
mod plain_producers;
mod share;

use std::time::Duration;

use redis::Connection;
use stanchion_tests::wait::timed;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What redis-py, Laravel, redlock and many others do: set only if absent; delete and extend only their own.
struct PlainLocker {
    raw: Connection,
    value: &'static str,
}

const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const COMPARE_AND_EXTEND: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

impl PlainLocker {
    fn new(bench: &stanchion_tests::stores::Bench, value: &'static str) -> Self {
        Self { raw: bench.raw(), value }
    }

    fn lock(&mut self, ttl: u64) -> bool {
        let mut set = redis::cmd("SET");
        set.arg("Lock:a").arg(self.value).arg("NX").arg("PX").arg(ttl);
        set.query::<Option<String>>(&mut self.raw).unwrap().is_some()
    }

    fn unlock(&mut self) -> bool {
        redis::Script::new(COMPARE_AND_DELETE).key("Lock:a").arg(self.value).invoke(&mut self.raw).unwrap()
    }

    fn extend(&mut self, ttl: u64) -> bool {
        let script = redis::Script::new(COMPARE_AND_EXTEND);
        script.key("Lock:a").arg(self.value).arg(ttl).invoke(&mut self.raw).unwrap()
    }

    fn get(&mut self) -> Option<String> {
        redis::cmd("GET").arg("Lock:a").query(&mut self.raw).unwrap()
    }

    fn ttl(&mut self) -> i64 {
        redis::cmd("PTTL").arg("Lock:a").query(&mut self.raw).unwrap()
    }
}
