//! Cached values: a hit against a bare GET, and two hundred callers of a value that one of them computes against a
//! bare client that polls for it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use stanchion::{CachedOptions, Client, Error, blocking};
use stanchion_tests::redis_server::RedisServer;
use tokio::task::JoinSet;

use crate::baseline::connect;
use crate::pair::{TURNS, compare_percentiles, timed};
use crate::report::{Report, percentile};

const CALLERS: usize = 200;
const ROUNDS: usize = 20;
/// How long the value takes to compute.
const COMPUTING: Duration = Duration::from_millis(100);
/// How often the bare client looks: ten times as often as the locks of redis-py do.
const POLL: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(60);

/// A fresh value, asked for on one thread.
pub fn hits(server: &RedisServer, report: &mut Report) {
    report.section("a cached value that is fresh (100 bytes) on redis, against GET");
    let client = blocking::Client::open(&server.url()).unwrap();
    let mut bare = connect(&server.url());
    client.cached("bench:hit", TTL, || Ok::<_, Error>(vec![b'x'; 100])).unwrap();
    redis::cmd("SET").arg("bench:bare").arg(vec![b'x'; 100]).exec(&mut bare).unwrap();
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        timed(&mut baseline, || {
            drop(redis::cmd("GET").arg("bench:bare").query::<Vec<u8>>(&mut bare).unwrap());
        });
        timed(&mut ours, || {
            drop(client.cached("bench:hit", TTL, || Ok::<Vec<u8>, Error>(Vec::new())).unwrap());
        });
    }
    compare_percentiles(report, "redis hit", ours, baseline);
}

/// How long after the computation each of them has the value.
pub fn stampede(server: &RedisServer, report: &mut Report) {
    report.section(
        "200 callers of a value that takes 100 ms, from when it is there, against polling every 10 ms",
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for clients in [1, 4] {
            let (mut ours, mut baseline) = (Vec::new(), Vec::new());
            let (computed, computed_bare) = (Computed::new(), Computed::new());
            let mut open = Vec::new();
            let mut bare = Vec::new();
            for _ in 0..clients {
                open.push(Client::open(&server.url()).await.unwrap());
                let client = redis::Client::open(server.url()).unwrap();
                bare.push(client.get_multiplexed_async_connection().await.unwrap());
            }
            for round in 0..ROUNDS {
                let key = format!("bench:stampede:{clients}:{round}");
                crowd(&mut ours, &computed, |number| {
                    call(open[number % clients].clone(), key.clone(), Arc::clone(&computed))
                })
                .await;
                crowd(&mut baseline, &computed_bare, |number| {
                    polling(bare[number % clients].clone(), key.clone(), Arc::clone(&computed_bare))
                })
                .await;
            }
            for part in [0.5, 0.99] {
                let name = format!("{clients} clients, p{:.0} after the computation", part * 100.0);
                let millis = |samples: &mut Vec<Duration>| percentile(samples, part).as_secs_f64() * 1_000.0;
                report.compare(&name, millis(&mut ours), millis(&mut baseline), "ms");
            }
            let count =
                |computed: &Computed| f64::from(computed.count.load(Ordering::Relaxed)) / ROUNDS as f64;
            let name = format!("{clients} clients, computations for 200 callers");
            report.compare(&name, count(&computed), count(&computed_bare), "");
        }
    });
}

/// Two hundred at once; notes when each had the value, counted from the end of the (last) computation.
async fn crowd<F>(samples: &mut Vec<Duration>, computed: &Computed, call: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let call = call(number);
        callers.spawn(async move {
            call.await;
            Instant::now()
        });
    }
    let mut had = Vec::new();
    while let Some(at) = callers.join_next().await {
        had.push(at.unwrap());
    }
    let ended = *computed.ended.lock().unwrap();
    samples.extend(had.into_iter().map(|at| at.saturating_duration_since(ended)));
}

/// The computations of all rounds.
struct Computed {
    count: AtomicU32,
    ended: Mutex<Instant>,
}

impl Computed {
    fn new() -> Arc<Self> {
        Arc::new(Self { count: AtomicU32::new(0), ended: Mutex::new(Instant::now()) })
    }

    async fn compute(&self) -> Vec<u8> {
        self.count.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(COMPUTING).await;
        *self.ended.lock().unwrap() = Instant::now();
        vec![b'x'; 100]
    }
}

async fn call(client: Client, key: String, computed: Arc<Computed>) {
    let compute = || async { Ok::<_, Error>(computed.compute().await) };
    client.cached(&key, CachedOptions::new(TTL), compute).await.unwrap();
}

/// What programs do without a library: look, lock, compute, store; the others look again and again.
async fn polling(mut bare: MultiplexedConnection, key: String, computed: Arc<Computed>) {
    let (value, lock) = (format!("{key}:value"), format!("{key}:lock"));
    loop {
        let found: Option<Vec<u8>> = redis::cmd("GET").arg(&value).query_async(&mut bare).await.unwrap();
        if found.is_some() {
            return;
        }
        let mut take = redis::cmd("SET");
        take.arg(&lock).arg("1").arg("NX").arg("PX").arg(30_000);
        if take.query_async::<Option<String>>(&mut bare).await.unwrap().is_some() {
            let found = computed.compute().await;
            let mut store = redis::cmd("SET");
            store.arg(&value).arg(found).arg("PX").arg(60_000);
            store.exec_async(&mut bare).await.unwrap();
            return redis::cmd("DEL").arg(&lock).exec_async(&mut bare).await.unwrap();
        }
        tokio::time::sleep(POLL).await;
    }
}
