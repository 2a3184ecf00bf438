//! Limiters: a try against the smallest script of its kind, and 64 takers of one limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::Script;
use stanchion::{Client, Limit, Taken, blocking};
use stanchion_tests::redis_server::RedisServer;
use tokio::task::JoinSet;

use crate::baseline::connect;
use crate::pair::{TURNS, compare_percentiles, timed};
use crate::report::Report;

const TAKERS: usize = 64;
const LASTS: Duration = Duration::from_secs(3);

/// The smallest that does it, without waits, and without a thought of clocks that go back.
const SMALLEST: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local used = tonumber(redis.call('GET', KEYS[1]) or now)
if used < now then used = now end
used = used + ARGV[1]
if used - now > tonumber(ARGV[2]) then return used - now - ARGV[2] end
redis.call('SET', KEYS[1], used, 'PX', math.ceil((used - now) / 1000))
return 0";

/// A take that does not wait, on one thread.
pub fn tries(server: &RedisServer, report: &mut Report) {
    report.section("a try of a rate on redis, against one EVALSHA of the smallest GCRA script");
    let client = blocking::Client::open(&server.url()).unwrap();
    let mut bare = connect(&server.url());
    let script = Script::new(SMALLEST);
    // What one costs, and how many may come at once.
    for (name, cost, burst) in [
        ("redis try, idle, p50", 1_u64, 1_u32),
        ("redis try, in a burst, p50", 1_000, 1_000_000),
        ("redis try, refused, p50", 3_600_000_000, 1),
    ] {
        let limit = Limit::rate(1, Duration::from_micros(cost.max(1_000))).burst(burst);
        let limit = if cost == 1 { Limit::rate(1_000, Duration::from_millis(1)) } else { limit };
        let limiter = client.limiter(name, limit).unwrap();
        let (mut ours, mut baseline) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            timed(&mut baseline, || {
                let mut call = script.prepare_invoke();
                call.key("bench:gcra").arg(cost).arg(cost * u64::from(burst));
                let _: u64 = call.invoke(&mut bare).unwrap();
            });
            timed(&mut ours, || {
                let _ = limiter.try_take(1).unwrap();
            });
        }
        redis::cmd("DEL").arg("bench:gcra").exec(&mut bare).unwrap();
        compare_percentiles(report, name.trim_end_matches(", p50"), ours, baseline);
    }
}

/// How many are allowed while everybody waits for more than there is.
pub fn takers(url: &str, store: &str, report: &mut Report) {
    report.section("64 takers of one limiter who wait in line: per second, against the limit");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let second = Duration::from_secs(1);
    for (kind, limit, rate) in [
        ("rate of 1,000", Limit::rate(1_000, second), 1_000),
        ("sliding window of 100 in 0.1 s", Limit::sliding_window(100, second / 10), 1_000),
    ] {
        let granted = runtime.block_on(async {
            let client = Client::open(url).await.unwrap();
            let limiter = client.limiter(&format!("takers {store} {kind}"), limit).unwrap();
            let counted = Arc::new(AtomicU64::new(0));
            let begun = Instant::now();
            let mut takers = JoinSet::new();
            for _ in 0..TAKERS {
                let (limiter, counted) = (limiter.clone(), Arc::clone(&counted));
                takers.spawn(async move {
                    while begun.elapsed() < LASTS {
                        assert_eq!(limiter.take(1, 10 * LASTS).await.unwrap(), Taken::Allowed);
                        if begun.elapsed() < LASTS {
                            counted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            while takers.join_next().await.is_some() {}
            counted.load(Ordering::Relaxed) as f64 / LASTS.as_secs_f64()
        });
        report.compare(&format!("{store} 64 tasks, {kind}"), granted, f64::from(rate), "per s");
    }
    let client = blocking::Client::open(url).unwrap();
    let limiter = client.limiter(&format!("threads {store}"), Limit::rate(1_000, second)).unwrap();
    let counted = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..TAKERS {
            scope.spawn(|| {
                while begun.elapsed() < LASTS {
                    assert_eq!(limiter.take(1, 10 * LASTS).unwrap(), Taken::Allowed);
                    if begun.elapsed() < LASTS {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let granted = counted.load(Ordering::Relaxed) as f64 / LASTS.as_secs_f64();
    report.compare(&format!("{store} 64 threads, rate of 1,000"), granted, 1_000.0, "per s");
}
