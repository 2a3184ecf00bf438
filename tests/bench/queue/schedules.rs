//! Schedules: what a claim pays for them, how late a slot is, and what happens when all are due at once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::Connection;
use stanchion::blocking::Queue;
use stanchion::{ClaimOptions, Schedule};
use stanchion_tests::redis_server::RedisServer;

use super::{fill, queue};
use crate::baseline::connect;
use crate::report::{Report, percentile};

/// Schedules of a queue whose claims are measured.
const DEFINED: usize = 1_000;
/// Claims with their acks in one turn.
const CLAIMS: usize = 500;
const TURNS: usize = 12;
/// Slots whose lateness is measured.
const SLOTS: usize = 80;
/// Schedules that are due at once.
const AT_ONCE: usize = 10_000;
/// Schedules that one request puts.
const LIST: usize = 1_000;

pub fn schedules(server: &RedisServer, report: &mut Report) {
    report.section("redis: schedules");
    let url = server.url();
    let mut counter = connect(&url);
    let (with, without) = (queue(&url, "bench:timed"), queue(&url, "bench:plain"));
    put(&with, DEFINED, "every 1000h");
    let mut samples: [Vec<Duration>; 2] = Default::default();
    for _ in 0..TURNS {
        samples[0].push(per_claim(&mut counter, &with));
        samples[1].push(per_claim(&mut counter, &without));
    }
    let [ours, none] = samples.map(|mut turns| percentile(&mut turns, 0.5).as_secs_f64() * 1e6);
    report.compare(
        "the server's time for a claim and its ack, 1,000 schedules against none",
        ours,
        none,
        "us",
    );
    let mut late = lateness(&url);
    for (label, part) in [("p50", 0.5), ("p99", 0.99)] {
        let millis = percentile(&mut late, part).as_secs_f64() * 1e3;
        report.note(&format!("redis lateness of a slot, idle consumer, {label}"), millis, "ms");
    }
    at_once(&url, &mut counter, report);
}

/// So many schedules of this text, in lists.
fn put(queue: &Queue, count: usize, when: &str) {
    for first in (0..count).step_by(LIST) {
        let list = (first..count.min(first + LIST)).map(|number| Schedule::new(format!("s{number}"), when));
        queue.sync_schedules(&format!("owner {first}"), 1, list).unwrap();
    }
}

/// The server's time for a task that is claimed and acked, by one script each.
fn per_claim(counter: &mut Connection, queue: &Queue) -> Duration {
    fill(queue, CLAIMS);
    redis::cmd("CONFIG").arg("RESETSTAT").exec(counter).unwrap();
    for _ in 0..CLAIMS {
        queue.claim(ClaimOptions::new()).unwrap()[0].ack().unwrap();
    }
    script_time(counter) / u32::try_from(CLAIMS).unwrap()
}

fn script_time(counter: &mut Connection) -> Duration {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(counter).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap();
    let micros = line.split(',').find_map(|field| field.strip_prefix("usec=")).unwrap();
    Duration::from_micros(micros.parse().unwrap())
}

/// How late slots of an idle consumer's queue start.
fn lateness(url: &str) -> Vec<Duration> {
    let queue = queue(url, "bench:slots");
    queue.schedule(Schedule::new("beat", "every 100ms")).unwrap();
    let options = ClaimOptions::new().wait(Duration::from_secs(30));
    let late = (0..SLOTS).map(|_| {
        let claims = queue.claim(options.clone()).unwrap();
        let late = SystemTime::now().duration_since(claims[0].due()).expect("a slot started early");
        claims[0].ack().unwrap();
        late
    });
    let late = late.collect();
    queue.remove_schedule("beat").unwrap();
    late
}

/// From when they are due until each has its task, with one consumer; and the longest script.
fn at_once(url: &str, counter: &mut Connection, report: &mut Report) {
    let queue = queue(url, "bench:burst");
    let due = SystemTime::now() + Duration::from_secs(4);
    let millis = due.duration_since(UNIX_EPOCH).unwrap().as_millis();
    let time = jiff::Timestamp::from_millisecond(i64::try_from(millis).unwrap()).unwrap();
    put(&queue, AT_ONCE, &format!("at {time}"));
    redis::cmd("CONFIG").arg("SET").arg("slowlog-log-slower-than").arg(1_000).exec(counter).unwrap();
    redis::cmd("SLOWLOG").arg("RESET").exec(counter).unwrap();
    let options = ClaimOptions::new().max(100).wait(Duration::from_secs(30));
    let mut claims = queue.claim(options.clone()).unwrap();
    let (mut done, mut fired) = (0, None);
    let began = Instant::now();
    let late = SystemTime::now().duration_since(due).unwrap_or_default();
    loop {
        done += claims.len();
        for claim in claims {
            claim.ack().unwrap();
        }
        if fired.is_none() && queue.stats().unwrap().enqueued as usize >= AT_ONCE {
            fired = Some(late + began.elapsed());
        }
        if done >= AT_ONCE {
            break;
        }
        claims = queue.claim(options.clone()).unwrap();
    }
    let fired = fired.unwrap_or_else(|| late + began.elapsed());
    report.note("redis, 10,000 schedules due at once: until all are fired", fired.as_secs_f64() * 1e3, "ms");
    report.note("the longest script meanwhile", longest(counter).as_secs_f64() * 1e3, "ms");
}

/// Of the scripts that took over a millisecond.
fn longest(counter: &mut Connection) -> Duration {
    let log: Vec<redis::Value> = redis::cmd("SLOWLOG").arg("GET").arg(128).query(counter).unwrap();
    let took = |entry: &redis::Value| match entry {
        redis::Value::Array(fields) => match fields.get(2) {
            Some(redis::Value::Int(micros)) => u64::try_from(*micros).ok(),
            _ => None,
        },
        _ => None,
    };
    Duration::from_micros(log.iter().filter_map(took).max().unwrap_or(1_000))
}
