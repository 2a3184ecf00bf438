//! locks(): which locks are held.

use stanchion::LockOptions;
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{on_every_topology, on_every_topology_of_locks};

use crate::{fixed, ms, secs};

on_every_topology_of_locks! {
    fn held_locks_are_listed_by_any_client(bench) {
        let client = bench.client();
        assert_eq!(client.all_locks(), Vec::<String>::new());
        let names = ["a", "b:meta", "größe", "x*[y]", "{t}:1"];
        let mut leases: Vec<_> =
            names.map(|name| client.lock(name).acquire(LockOptions::new()).unwrap()).into();
        let mut expected = names.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(bench.client().all_locks(), expected);
        leases.remove(0).release().unwrap();
        assert_eq!(bench.client().all_locks(), expected[1..].to_vec().as_slice()
            .iter().filter(|name| *name != "a").cloned().collect::<Vec<_>>());
    }

    fn expired_locks_are_not_listed(bench) {
        let client = bench.client();
        let _short = client.lock("short").acquire(fixed(ms(60))).unwrap();
        let _long = client.lock("long").acquire(fixed(secs(30))).unwrap();
        eventually(SOON, || client.all_locks() == ["long"]);
    }

    fn cooldowns_are_listed(bench) {
        let client = bench.client();
        client.lock("a").acquire(LockOptions::new()).unwrap().release_with_cooldown(secs(30)).unwrap();
        assert_eq!(client.all_locks(), ["a"]);
    }

    fn only_locks_of_the_clients_prefix_are_listed(bench) {
        let one = bench.open(bench.builder().lock_prefix("one*"));
        let two = bench.open(bench.builder().lock_prefix("one2"));
        let _a = one.lock("a").acquire(LockOptions::new()).unwrap();
        let _b = two.lock("b").acquire(LockOptions::new()).unwrap();
        assert_eq!(one.all_locks(), ["a"], "a prefix is no pattern");
        assert_eq!(two.all_locks(), ["b"]);
    }
}

on_every_topology! {
    fn many_locks_come_in_pages(bench) {
        let client = bench.client();
        let mut leases = Vec::new();
        for number in 0..1_200 {
            leases.push(client.lock(&format!("n{number:04}")).acquire(fixed(secs(60))).unwrap());
        }
        assert!(client.locks(None).unwrap().names.len() < 1_200, "one page has them all");
        let expected: Vec<_> = (0..1_200).map(|number| format!("n{number:04}")).collect();
        assert_eq!(client.all_locks(), expected);
        assert_eq!(client.release_all().unwrap(), 1_200);
    }
}
