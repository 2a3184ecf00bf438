//! CallSlots move from node to node while clients work: MOVED, ASK and TRYAGAIN.

use stanchion::{Client, ErrorKind, TaskState};
use stanchion_tests::cluster::Cluster;
use stanchion_tests::faces::Face;
use stanchion_tests::unique;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::load::{Load, Trouble};
use crate::{fixed, ms, open, renewed};

on_both_faces! {
    /// A move that was begun and not ended: calls on the slot are refused in time, and go on when it is undone.
    fn a_slot_that_stays_open(face) {
        let cluster = Cluster::start(2, 0);
        // What must succeed has more time than what must not.
        let patient = open(face, Client::builder(&cluster.url())).lock("{slot}job");
        let client = open(face, Client::builder(&cluster.url()).timeout(ms(800)));
        let lock = client.lock("{slot}job");
        let lease = patient.acquire(fixed(60_000, 0)).unwrap();
        let slot = cluster.slot("Lock:{slot}job");
        let from = cluster.owner(slot).unwrap();
        let ids = [from, 1 - from].map(|node| cluster.nodes[node].cli(&["CLUSTER", "MYID"]));
        let set = |node: usize, words: &[&str]| {
            let slot = slot.to_string();
            cluster.nodes[node].cli(&[&["CLUSTER", "SETSLOT", &slot], words].concat());
        };
        set(1 - from, &["IMPORTING", &ids[0]]);
        set(from, &["MIGRATING", &ids[1]]);
        for wait in [0, 400] {
            let error = lock.acquire(fixed(500, wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            assert!(error.is_retryable());
        }
        // One that the store knows nothing of: only then the node points to the other.
        let error = client.lock("{slot}new").is_locked().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(cluster.errors("TRYAGAIN") > 0 && cluster.errors("ASK") > 0);
        let waiting = task(move || patient.acquire(fixed(5_000, 60_000)).unwrap().release().unwrap());
        set(from, &["STABLE"]);
        set(1 - from, &["STABLE"]);
        lease.release().unwrap();
        waiting.join();
    }

    /// Nothing is lost, nothing comes twice, no lease ends.
    fn slots_move_under_load(face) {
        let cluster = Cluster::start(2, 0);
        let client = open(face, Client::builder(&cluster.url()));
        let names = [(); 2].map(|()| unique("moves"));
        let load = Load::begin(&client, &names, Trouble::Nothing);
        let held = client.lock(&names[0].replace("moves", "held")).acquire(renewed(10_000, 0)).unwrap();
        let mut keys: Vec<_> =
            names.iter().flat_map(|name| [format!("Lock:{name}"), format!("Queue:{name}")]).collect();
        keys.push(format!("Lock:{}", held.name()));
        for _ in 0..2 {
            for key in &keys {
                let slot = cluster.slot(key);
                let from = cluster.owner(slot).unwrap();
                let before = cluster.errors("MOVED");
                cluster.move_slot(slot, from, 1 - from, || {
                    let refusals = || cluster.errors("TRYAGAIN") + cluster.errors("ASK");
                    let before = refusals();
                    // Nobody but the keeper uses the lock that is held.
                    eventually(SOON, || key.contains("held") || refusals() > before);
                });
                eventually(SOON, || key.contains("held") || cluster.errors("MOVED") > before);
            }
            load.wait_for_progress();
        }
        assert_eq!(cluster.errors("CROSSSLOT"), 0);
        held.check().unwrap();
        held.release().unwrap();
        let tasks = load.end();
        let (mut accepted, mut acked, mut left) = (0, 0, 0);
        for name in &names {
            let queue = client.queue(name);
            let stats = queue.stats().unwrap();
            accepted += stats.enqueued;
            acked += stats.acked;
            left += queue.all(TaskState::Ready).len() as u64;
            assert_eq!((stats.claimed, stats.dead, stats.retried), (0, 0, 0));
            assert!(!client.lock(name).is_locked().unwrap());
        }
        let count = |number: &std::sync::atomic::AtomicU64| number.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!((accepted, acked), (count(&tasks.accepted), count(&tasks.done)));
        assert_eq!(left, accepted - acked, "a task was lost, or came twice");
    }
}
