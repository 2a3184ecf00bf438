//! What a fork does to locks: parent and child both go on, and a lease stays its owner's.
//!
//! The forks happen in the actor, a program of its own: a test harness has threads that a child lacks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod shared;
mod turns;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use stanchion_tests::RedisServer;
use stanchion_tests::actor::Actor;
use stanchion_tests::faces::Face;
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually};

/// Makes a test per face, and per store that processes can share, a cluster too.
macro_rules! on_shared_stores {
    ($($(#[doc = $doc:literal])* fn $name:ident($bench:ident) $body:block)+) => {$(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            fn run($bench: &Bench) $body
            #[test]
            fn redis_blocking() {
                run(&Bench::new(Kind::Redis, Face::Blocking));
            }
            #[test]
            fn redis_async() {
                run(&Bench::new(Kind::Redis, Face::Async));
            }
            #[test]
            fn cluster_blocking() {
                run(&Bench::new(Kind::Cluster, Face::Blocking));
            }
            #[test]
            fn cluster_async() {
                run(&Bench::new(Kind::Cluster, Face::Async));
            }
            #[test]
            fn sqlite_blocking() {
                run(&Bench::new(Kind::Sqlite, Face::Blocking));
            }
            #[test]
            fn sqlite_async() {
                run(&Bench::new(Kind::Sqlite, Face::Async));
            }
        }
    )+};
}

/// A child that has much to do may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn word(face: Face) -> &'static str {
    if face == Face::Async { "async" } else { "blocking" }
}

fn actor(url: &str, face: Face) -> Actor {
    Actor::connected(env!("CARGO_BIN_EXE_actor"), url, word(face))
}

fn child_of(reply: &Value) -> Option<u64> {
    reply["child"].as_u64()
}

/// Forks, and returns the child's replies to its orders when it has ended, well.
#[track_caller]
fn replies_of_child(actor: &mut Actor, orders: &str) -> Vec<Value> {
    actor.order(&format!("fork {orders}"));
    let (mut child, mut replies) = (None, Vec::new());
    while child.is_none() || replies.len() < orders.split(';').count() {
        let reply = actor.reply_within(PATIENCE);
        match child_of(&reply) {
            Some(pid) => child = Some(pid),
            None => {
                assert_eq!(reply["who"], "child", "{reply}");
                replies.push(reply);
            }
        }
    }
    join(actor, child.unwrap());
    replies
}

#[track_caller]
fn join(actor: &mut Actor, child: u64) {
    assert_eq!(actor.ok(&format!("join {child}"))["code"], 0, "the child did not end well");
}

#[track_caller]
fn assert_fine(replies: &[Value]) {
    for reply in replies {
        assert!(reply["error"].is_null(), "{reply}");
    }
}

/// A number in a file that is incremented under the lock only.
struct Counter {
    _dir: tempfile::TempDir,
    file: PathBuf,
}

impl Counter {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("counter");
        fs::write(&file, "0").unwrap();
        Self { _dir: dir, file }
    }

    fn value(&self) -> u64 {
        fs::read_to_string(&self.file).unwrap().parse().unwrap()
    }
}

/// Waits for the next renewal of the lease on a lock.
#[track_caller]
fn assert_is_renewed(bench: &Bench, name: &str) {
    let lock = bench.client().lock(name);
    let left = || lock.holder().unwrap().expect("the lock's holder").remaining;
    let mut last = left();
    eventually(SOON, || {
        let now = left();
        now > std::mem::replace(&mut last, now)
    });
}

on_shared_stores! {
    /// Parent and child both go on with the same client; no update is lost.
    fn fork_after_use(bench) {
        const EACH: u64 = 150;
        let counter = Counter::new();
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("acquire warm 5000 0 fixed");
        parent.ok("release");
        let count = format!("count {} job {EACH}", counter.file.display());
        parent.order(&format!("fork {count}"));
        parent.order(&format!("fork {count}"));
        parent.order(&count);
        let (mut children, mut counted) = (Vec::new(), 0);
        while counted < 3 {
            let reply = parent.reply_within(PATIENCE);
            assert!(reply["error"].is_null(), "{reply}");
            match child_of(&reply) {
                Some(child) => children.push(child),
                None => counted += 1,
            }
        }
        children.into_iter().for_each(|child| join(&mut parent, child));
        assert_eq!(counter.value(), 3 * EACH);
    }

    /// A lease is its owner's: the child cannot use it, and its end does the owner no harm.
    fn inherited_lease(bench) {
        let mut parent = actor(bench.url(), bench.face);
        for name in ["a", "b", "c", "d"] {
            parent.ok(&format!("acquire {name} 6000 0 renew"));
        }
        let replies = replies_of_child(
            &mut parent,
            "status; extend 6000; release; detach 6000; drop; release_all; acquire a 500 0 fixed; \
             acquire own 5000 0 fixed; release; drop; drop_client",
        );
        let kinds: Vec<&str> = replies.iter().map(|reply| reply["error"].as_str().unwrap_or("")).collect();
        let forked = "Forked";
        assert_eq!(kinds, ["", forked, forked, forked, "", "", "LockTimeout", "", "", "", ""], "{replies:?}");
        assert_eq!((&replies[0]["valid"], &replies[0]["remaining_ms"]), (&false.into(), &0.0.into()));
        assert_eq!(replies[5]["released"], 0);

        for name in ["a", "b", "c", "d"] {
            assert!(bench.client().lock(name).is_locked().unwrap(), "the child ended {name}");
        }
        assert_eq!(parent.ok("status")["valid"], true);
        for _ in 0..4 {
            parent.ok("extend 6000");
            parent.ok("release");
        }
    }

    /// The parent's threads or tasks are inside of acquire, wait and release while it forks.
    fn fork_while_others_wait(bench) {
        let counter = Counter::new();
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("acquire kept 6000 0 renew");
        parent.ok("busy job 4");
        let mut rounds = || loop {
            let rounds = parent.ok("rounds")["rounds"].as_u64().unwrap();
            if rounds > 20 {
                break rounds;
            }
        };
        let before = rounds();
        let orders = format!("count {} counter 3; acquire job 5000 60000 fixed; release; release", counter.file.display());
        for _ in 0..20 {
            let replies = replies_of_child(&mut parent, &orders);
            assert_fine(&replies[..3]);
            assert_eq!(replies[3]["error"], "Forked", "{:?}", replies[3]);
        }
        assert_eq!(counter.value(), 60);
        let end = parent.ok("idle");
        assert_eq!(end["failures"], 0, "{end}");
        assert!(end["rounds"].as_u64().unwrap() > before);
        assert_is_renewed(bench, "kept");
        assert_eq!(parent.ok("status")["valid"], true);
        parent.ok("release");
        assert!(!bench.client().lock("job").is_locked().unwrap());
    }

    /// The child has none of the parent's callers, and waits for the value in its own name.
    fn fork_while_callers_of_cached_wait(bench) {
        let client = bench.client();
        let ticket = client.begin_cached("a", secs(600)).unwrap().ticket();
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("busy_cached a 600000 4");
        eventually(SOON, || client.computation("a").waiters() == 1);
        parent.order("fork cached a 600000; cached b 600000");
        let child = child_of(&parent.reply()).unwrap();
        eventually(SOON, || client.computation("a").waiters() == 2);
        assert!(ticket.store("v").unwrap());
        let found = [parent.reply(), parent.reply()];
        assert_eq!((&found[0]["value"], &found[1]["value"]), (&"v".into(), &"own".into()), "{found:?}");
        join(&mut parent, child);

        // They come and go, compute and wait while it forks.
        parent.ok("busy_cached c 1 4");
        for _ in 0..10 {
            assert_fine(&replies_of_child(&mut parent, "cached c 1; cached c 1; cached a 600000"));
        }
        let end = parent.ok("idle");
        assert_eq!(end["failures"], 0, "{end}");
    }

    /// A child's child is another process again.
    fn grandchild(bench) {
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("acquire a 5000 0 fixed");
        parent.order("fork acquire b 5000 0 fixed; fork release; acquire c 5000 0 fixed; release; release");
        let mut replies: Vec<Value> = (0..7).map(|_| parent.reply()).collect();
        replies.retain(|reply| child_of(reply).is_none());
        let errors: Vec<&Value> = replies.iter().map(|reply| &reply["error"]).filter(|error| !error.is_null()).collect();
        // Of the grandchild's, which inherits the child's lease of b.
        assert_eq!(errors, ["Forked"], "{replies:?}");
        assert_eq!(parent.ok("status")["valid"], true);
        parent.ok("release");
    }

    /// A claim is its owner's: the child cannot use it, and its end does the owner no harm.
    fn inherited_claim(bench) {
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("enqueue q a");
        parent.ok("enqueue q b");
        parent.ok("claim q 1 3000 0 renew");
        let replies = replies_of_child(
            &mut parent,
            "claim_status; ack; nack 0; extend_claim 3000; drop_claim; claim q 5 5000 0 fixed; ack; drop_client",
        );
        let kinds: Vec<&str> = replies.iter().map(|reply| reply["error"].as_str().unwrap_or("")).collect();
        let forked = "Forked";
        assert_eq!(kinds, ["", forked, forked, forked, "", "", "", ""], "{replies:?}");
        assert_eq!(replies[0]["valid"], false);
        let claims = replies[5]["claims"].as_array().unwrap();
        assert_eq!((claims.len(), &claims[0]["id"]), (1, &"b".into()), "the child's own claim");

        // It is renewed by the parent all the same.
        let queue = bench.client().queue("q");
        let first = queue.task("a").lease_left;
        eventually(SOON, || queue.task("a").lease_left > first);
        assert_eq!(parent.ok("claim_status")["valid"], true);
        parent.ok("extend_claim 3000");
        parent.ok("ack");
        assert_eq!(parent.ok("stats q")["counts"], serde_json::json!([0, 0, 0, 0]));
    }

    /// Parent and child enqueue and claim through the client that both have: each call has its own reply.
    fn queue_after_a_fork(bench) {
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("enqueue q warm");
        parent.ok("claim q 1 5000 0 fixed");
        parent.ok("ack");
        for round in 0..5 {
            let orders = format!("enqueue q child{round}; claim q 1 5000 0 fixed; ack");
            let replies = replies_of_child(&mut parent, &orders);
            assert_fine(&replies);
            assert_eq!(replies[0]["outcome"], "Added");
            assert_eq!(replies[1]["claims"][0]["id"], format!("child{round}"), "{replies:?}");
            assert_eq!(parent.ok(&format!("enqueue q parent{round}"))["outcome"], "Added");
            assert_eq!(parent.ok("claim q 1 5000 0 fixed")["claims"][0]["id"], format!("parent{round}"));
            parent.ok("ack");
        }
        let stats = bench.client().queue("q").stats().unwrap();
        assert_eq!((stats.enqueued, stats.acked, stats.ready), (11, 11, 0));
    }

    /// The parent's worker goes on while it forks; the child's end harms no task of it.
    fn fork_with_a_worker(bench) {
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("enqueue q endless");
        parent.order("work q 3000");
        let first = [parent.reply(), parent.reply()];
        assert!(first.iter().any(|line| line["id"] == "endless"), "{first:?}");
        for _ in 0..3 {
            assert_fine(&replies_of_child(&mut parent, "stats q; drop_client"));
        }
        let queue = bench.client().queue("q");
        queue.enqueue(stanchion::Task::new("after")).unwrap();
        assert_eq!(parent.reply()["id"], "after");
        let left = queue.task("endless").lease_left;
        eventually(SOON, || queue.task("endless").lease_left > left);
        assert_eq!(queue.task("endless").attempts, 1);
    }

    /// A child that inherited a client of the parent, and never uses it, ends like any other.
    fn child_that_does_nothing(bench) {
        let mut parent = actor(bench.url(), bench.face);
        parent.ok("acquire a 6000 0 renew");
        for orders in ["status", "drop", "drop_client", "drop; drop_client"] {
            assert_fine(&replies_of_child(&mut parent, orders));
        }
        assert_is_renewed(bench, "a");
        assert_eq!(parent.ok("status")["valid"], true);
        parent.ok("release");
    }
}

/// The parent's connections survive its child: the sockets are closed there, never shut down.
#[test]
fn sockets_of_the_parent() {
    for face in [Face::Blocking, Face::Async] {
        let server = RedisServer::start();
        let mut parent = actor(&server.url(), face);
        let clients = |kind: &str| {
            let list = server.cli(&["CLIENT", "LIST", "TYPE", kind]);
            let ids = list.lines().filter(|line| !line.contains("cmd=client|list"));
            ids.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        parent.ok("acquire kept 6000 0 renew");
        parent.ok("busy job 3");
        eventually(SOON, || !clients("pubsub").is_empty());
        let before = clients("pubsub");
        for _ in 0..3 {
            assert_fine(&replies_of_child(&mut parent, "acquire own 5000 0 fixed; release; drop_client"));
        }
        assert_eq!(clients("pubsub"), before, "{face:?}");
        assert_eq!(parent.ok("idle")["failures"], 0);
        assert_eq!(parent.ok("status")["valid"], true);
        parent.ok("release");
    }
}

/// The child, which has said that the wait is not its own; the parent says nothing more yet.
#[track_caller]
fn forked_in_a_wait(parent: &Actor) -> u64 {
    let said = [parent.reply(), parent.reply()];
    let of_child = said.iter().find(|reply| reply["who"] == "child");
    assert_eq!(of_child.map(|reply| &reply["error"]), Some(&"Forked".into()), "{said:?}");
    said.iter().find_map(child_of).unwrap()
}

/// A signal handler forks in the middle of a wait for a cached value, of one that waits in line and of one that waits for
/// that one: in the child it ends soon, and in the parent it goes on.
#[test]
fn fork_in_a_wait_for_a_cached_value() {
    for kind in [Kind::Redis, Kind::Sqlite] {
        let bench = Bench::new(kind, Face::Blocking);
        let client = bench.client();
        for callers in [0, 1] {
            let ticket = client.begin_cached("a", secs(600)).unwrap().ticket();
            let mut parent = actor(bench.url(), Face::Blocking);
            parent.ok(&format!("busy_cached a 600000 {callers}"));
            eventually(SOON, || client.computation("a").waiters() == callers);
            parent.order("cached_forking a");
            let child = forked_in_a_wait(&parent);
            assert!(ticket.store("v").unwrap());
            let found = parent.reply();
            assert_eq!(
                (&found["who"], &found["error"]),
                (&"parent".into(), &Value::Null),
                "{kind:?}: {found}"
            );
            join(&mut parent, child);
            assert_eq!(parent.ok("idle")["failures"], 0);
            client.invalidate("a").unwrap();
        }
    }
}

/// The same while the request is on its way, by a thread that the child does not have.
#[test]
fn fork_while_a_request_is_on_its_way() {
    let server = RedisServer::start();
    let mut parent = actor(&server.url(), Face::Blocking);
    parent.ok("cached b 600000");
    server.stop_signal();
    parent.order("cached_forking a");
    let child = forked_in_a_wait(&parent);
    server.cont_signal();
    let found = parent.reply();
    assert_eq!((&found["who"], &found["error"]), (&"parent".into(), &Value::Null), "{found}");
    join(&mut parent, child);
}

/// Memory is copied by a fork, so locks in it would exclude nobody: refused.
#[test]
fn memory_store_in_a_child() {
    for face in [Face::Blocking, Face::Async] {
        let mut parent = actor("memory:", face);
        parent.ok("acquire a 5000 0 fixed");
        let replies = replies_of_child(&mut parent, "acquire b 5000 0 fixed; release");
        for reply in replies {
            assert_eq!(reply["error"], "Forked", "{reply}");
        }
        parent.ok("release");
    }
}
