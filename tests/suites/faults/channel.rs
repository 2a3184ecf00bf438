//! The channel of hints of a client that goes on: while nothing is heard for long, and when its process was stopped.

use std::time::Duration;

use stanchion_tests::RedisServer;
use stanchion_tests::faces::Face;
use stanchion_tests::wait::{SOON, eventually, eventually_some, task};

use crate::{actor_at, fixed, open};

/// Twice as long as the server may be silent before it is asked whether it is there, and a bit.
const LONG: u64 = 31;

/// The id and the age in seconds of each connection that listens.
fn subscribers(server: &RedisServer) -> Vec<(String, u64)> {
    let list = server.cli(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    let of_one = |line: &str| {
        let value =
            |name: &str| Some(line.split_whitespace().find_map(|field| field.strip_prefix(name))?.to_owned());
        Some((value("id=")?, value("age=")?.parse().ok()?))
    };
    list.lines().filter_map(of_one).collect()
}

on_both_faces! {
    /// Nobody is hinted for long: the channel is asked whether it works, and stays.
    fn channel_silent_for_long(face) {
        let server = RedisServer::start();
        let truth = open(Face::Blocking, &server.url()).lock("job");
        let waiter = open(face, &server.url()).lock("job");
        let holder = truth.acquire(fixed(120_000, 0)).unwrap();
        let waiting = task(move || waiter.acquire(fixed(5_000, 120_000)).unwrap());
        let (first, _) = eventually_some(SOON, || subscribers(&server).pop());
        let (after, _) = eventually_some(Duration::from_secs(3 * LONG), || {
            subscribers(&server).into_iter().find(|(id, age)| *id != first || *age >= LONG)
        });
        assert_eq!(after, first, "the channel was closed and opened anew");
        holder.release().unwrap();
        waiting.join().release().unwrap();
    }

    /// A process that is stopped and goes on, as in a debugger or a paused container, has its reads cut short.
    fn process_stopped_while_it_listens(face) {
        let server = RedisServer::start();
        let truth = open(Face::Blocking, &server.url()).lock("job");
        let mut waiter = actor_at(&server.url(), face);
        for _ in 0..3 {
            let holder = truth.acquire(fixed(60_000, 0)).unwrap();
            waiter.order("acquire job 60000 60000 fixed");
            eventually(SOON, || truth.waiters() == 1);
            let before = eventually_some(SOON, || subscribers(&server).pop()).0;
            waiter.freeze();
            waiter.thaw();
            holder.release().unwrap();
            let reply = waiter.reply();
            assert!(reply["fence"].is_u64(), "{reply}");
            let after: Vec<_> = subscribers(&server).into_iter().map(|(id, _)| id).collect();
            assert_eq!(after, [before]);
            waiter.ok("release");
        }
    }
}
