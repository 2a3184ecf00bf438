//! A cluster as a store: names in all slots, and masters that die, freeze, or serve nothing.

use std::time::Instant;

use stanchion::{ClaimOptions, Client, ErrorKind, Task};
use stanchion_tests::cluster::{self, Cluster};
use stanchion_tests::faces::Face;
use stanchion_tests::unique;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::load::{GETS_ON, Load, Trouble};
use crate::{fixed, ms, open, renewed, use_it};

on_both_faces! {
    fn names_in_all_slots(face) {
        let cluster = cluster::shared();
        let url = cluster.fresh_prefix();
        let prefix = url.split(['=', '&']).nth(1).unwrap();
        let client = open(face, Client::builder(&url));
        let names: Vec<_> = (0..12).map(|number| format!("n{number:02}")).collect();
        assert_eq!(cluster.spread(&names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>()), 3);
        for name in &names[..4] {
            use_it(&client, name);
        }
        // Renewed in one round, by several nodes.
        let leases: Vec<_> =
            names.iter().map(|name| client.lock(name).acquire(renewed(2_400, 0)).unwrap()).collect();
        assert_eq!(client.all_locks(), names);
        let begun = Instant::now();
        eventually(SOON, || begun.elapsed() > ms(3_400));
        leases.iter().for_each(|lease| lease.check().unwrap());
        assert_eq!(client.release_all().unwrap(), names.len());

        for name in &names {
            client.queue(name).enqueue(Task::new("a").payload(name.as_str())).unwrap();
        }
        let mut listed = client.queue_names(None).unwrap();
        while let Some(page) = listed.next {
            let more = client.queue_names(Some(page)).unwrap();
            listed.names.extend(more.names);
            listed.next = more.next;
        }
        listed.names.sort();
        assert_eq!(listed.names, names);
        let queues = client.queues(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let claims: Vec<_> =
            names.iter().map(|_| queues.claim(ClaimOptions::new()).unwrap().remove(0)).collect();
        assert!(claims.iter().zip(&names).all(|(claim, name)| claim.payload() == name.as_bytes()));
        assert!(claims.iter().all(|claim| claim.ack().is_ok()));
    }

    /// Names with a hash tag are in its slot, and so is all that belongs to them.
    fn names_with_hash_tags(face) {
        let client = open(face, Client::builder(&cluster::shared().url()));
        for name in [unique("{tag}:a"), unique("b:{tag}"), unique("größe")] {
            use_it(&client, &name);
        }
    }

    /// The replica takes over: calls wait or fail in time, and then go on.
    fn master_sigkilled_under_load(face) {
        let cluster = Cluster::start_with(3, 1, |node| {
            node.arg("--cluster-node-timeout", "3000").arg("--cluster-require-full-coverage", "no")
        });
        let client = open(face, Client::builder(&cluster.url()));
        let names: Vec<_> = ["a", "b"].map(unique).into();
        let load = Load::begin(&client, &names, Trouble::Failover);
        let slot = cluster.slot(&format!("Lock:{}", names[0]));
        let victim = cluster.owner(slot).unwrap();
        let on = |node: usize, topic: &str| {
            let mut found = (0..).map(|number| format!("{topic}{number}"));
            found.find(|name| cluster.owner(cluster.slot(&format!("Lock:{name}"))) == Some(node)).unwrap()
        };
        let [there, elsewhere] = [on(victim, "held"), on((victim + 1) % 3, "held")];
        let held = client.lock(&there).acquire(fixed(60_000, 0)).unwrap();
        let renewed = client.lock(&elsewhere).acquire(renewed(20_000, 0)).unwrap();
        let waiter = client.lock(&there);
        let waiting = task(move || waiter.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        eventually(SOON, || client.lock(&there).waiters() == 1);
        // The grant must be known to the replica, however slow the machine: that it may be lost is not tested here.
        let mut raw = cluster.nodes[victim].raw();
        redis::cmd("SET").arg(format!("seen{{Lock:{there}}}")).arg("").exec(&mut raw).unwrap();
        assert_eq!(redis::cmd("WAIT").arg(1).arg(30_000).query::<i64>(&mut raw).unwrap(), 1);

        cluster.nodes[victim].kill9();
        eventually(GETS_ON, || cluster.owner(slot).is_some_and(|owner| owner != victim));
        load.wait_for_progress();
        renewed.check().unwrap();
        renewed.release().unwrap();
        held.release().unwrap();
        waiting.join();

        // It comes back as a replica, and says so to whoever still asks it.
        cluster.nodes[victim].start_again();
        load.wait_for_progress();
        load.end();
        use_it(&client, &unique("new"));
    }

    /// CLUSTERDOWN: bounded, typed, and over as soon as somebody serves the slot.
    fn slots_that_nobody_serves(face) {
        let cluster = Cluster::start(1, 0);
        let node = &cluster.nodes[0];
        // What must succeed has more time than what must not.
        let patient = open(face, Client::builder(&cluster.url())).lock("job");
        let lock = open(face, Client::builder(&cluster.url()).timeout(ms(800))).lock("job");
        let lease = patient.acquire(fixed(60_000, 0)).unwrap();
        let slot = cluster.slot("Lock:job").to_string();
        node.cli(&["CLUSTER", "DELSLOTS", &slot]);
        eventually(SOON, || node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:fail"));
        for wait in [0, 400] {
            let begun = Instant::now();
            let error = lock.acquire(fixed(500, wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert!(error.is_retryable());
            assert!(begun.elapsed() < SOON / 2, "an acquire with a wait of {wait} ms took {:?}", begun.elapsed());
        }
        assert_eq!(lock.holder().unwrap_err().kind(), ErrorKind::StoreUnavailable);
        let waiting = task(move || patient.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        node.cli(&["CLUSTER", "ADDSLOTS", &slot]);
        eventually(SOON, || lock.is_locked().is_ok());
        lease.release().unwrap();
        waiting.join();
    }
}

/// One node is silent: leases on the others are renewed in time.
#[test]
fn a_frozen_master_holds_up_no_renewal_elsewhere() {
    let cluster = Cluster::start(3, 0);
    let client = open(Face::Blocking, Client::builder(&cluster.url()));
    let frozen = cluster.owner(cluster.slot("Lock:n0")).unwrap();
    let (mut there, mut elsewhere) = (Vec::new(), Vec::new());
    for name in (0..12).map(|number| format!("n{number}")) {
        let is_there = cluster.owner(cluster.slot(&format!("Lock:{name}"))) == Some(frozen);
        let lease = client.lock(&name).acquire(renewed(3_000, 0)).unwrap();
        if is_there { there.push(lease) } else { elsewhere.push(lease) }
    }
    cluster.nodes[frozen].stop_signal();
    let begun = Instant::now();
    there.iter().for_each(|lease| assert!(lease.wait_lost(SOON)));
    eventually(SOON, || begun.elapsed() > ms(6_500));
    elsewhere.iter().for_each(|lease| lease.check().unwrap());
    cluster.nodes[frozen].cont_signal();
    elsewhere.into_iter().for_each(|lease| lease.release().unwrap());
}
