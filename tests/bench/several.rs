//! Several servers, against one: a quorum and a cluster.

use std::time::Duration;

use stanchion::LockOptions;
use stanchion::blocking::Client;
use stanchion_tests::cluster::Cluster;
use stanchion_tests::quorum::Quorum;
use stanchion_tests::redis_server::RedisServer;

use crate::pair::{self, TURNS, compare_percentiles, timed};
use crate::report::Report;

/// Puts a server onto one of the cores.
type Pin<'a> = &'a dyn Fn(&RedisServer, usize);

/// Pairs on a quorum, with all servers and with one frozen, against one server.
pub fn quorum(server: &RedisServer, pin: Pin<'_>, report: &mut Report) {
    report.section("blocking acquire + release on a quorum, against one server");
    let one = Client::open(&server.url()).unwrap().lock("bench:quorum");
    for count in [3, 5] {
        let quorum = Quorum::start(count);
        // Both cores: servers of a quorum work at the same time.
        quorum.servers.iter().enumerate().for_each(|(number, server)| pin(server, number));
        let lock = Client::open(&quorum.url()).unwrap().lock("bench:quorum");
        let (mut ours, mut single) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            timed(&mut single, || one.acquire(LockOptions::new()).unwrap().release().unwrap());
            timed(&mut ours, || lock.acquire(LockOptions::new()).unwrap().release().unwrap());
        }
        compare_percentiles(report, &format!("pair on {count} servers"), ours, single.clone());
        quorum.servers[0].stop_signal();
        let mut ours = Vec::new();
        for _ in 0..TURNS {
            timed(&mut ours, || lock.acquire(LockOptions::new()).unwrap().release().unwrap());
        }
        compare_percentiles(report, &format!("pair on {count} servers, one frozen"), ours, single);
    }
}

/// Pairs of 64 tasks on a cluster of three masters, against one server.
pub fn cluster(server: &RedisServer, pin: Pin<'_>, report: &mut Report) {
    report.section("64 tasks at once on a cluster of 3, against one server");
    let cluster = Cluster::start(3, 0);
    // All on the core of the one server: the same work on the same processor.
    cluster.nodes.iter().for_each(|node| pin(node, 0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, one) = runtime.block_on(async {
        let ours = stanchion::Client::open(&cluster.url()).await.unwrap();
        let one = stanchion::Client::open(&server.url()).await.unwrap();
        let (mut our_time, mut one_time) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..TURNS {
            our_time += pair::our_turn(&ours).await;
            one_time += pair::our_turn(&one).await;
        }
        let pairs = pair::turn_pairs() * TURNS as f64;
        (pairs / our_time.as_secs_f64(), pairs / one_time.as_secs_f64())
    });
    report.compare("pairs on a cluster, 64 async tasks", ours, one, "pairs/s");
}
