//! Slots move from node to node while clients work: MOVED, ASK and TRYAGAIN.

use stanchion::{Client, TaskState};
use stanchion_tests::cluster::Cluster;
use stanchion_tests::faces::Face;
use stanchion_tests::unique;
use stanchion_tests::wait::{SOON, eventually};

use crate::load::{Load, Trouble};
use crate::{open, renewed};

on_both_faces! {
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
        assert!(cluster.errors("ASK") > 0 && cluster.errors("TRYAGAIN") > 0 && cluster.errors("MOVED") > 0);
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
