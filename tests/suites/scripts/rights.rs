//! Users with few rights, and servers that forget scripts.

use stanchion::internals::Clock;
use stanchion::protocol::{FailureKind, Request};
use stanchion::store::Store;
use stanchion::{ACL_RULE, ErrorKind};
use stanchion_tests::RedisServer;

use crate::acquire_all::all;
use crate::case::{
    Bench, acquire, break_lease, describe, extend, holder, leave, perform, release, resume, store, wait,
};
use crate::state::{State, WEEK, WINDOW, nothing};

const META: &str = "fence 100, born 50, owner x, since 1, calm_until 0, wait_until {then+2400}";

fn waited_for() -> State {
    nothing().lock("{T1}", 30_000).meta(META, WEEK).line(&[(2, "900")]).waiters(&[(2, "{then-100} 0 {C} 6")])
}

/// The rule in the documentation is enough for every path of every script.
#[test]
fn the_documented_rule_is_enough() {
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {ACL_RULE}")).start();
    let mut bench = Bench::at(&server.url());
    bench.set_up(&waited_for());
    bench.store = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
    let until = Clock::System.now() + std::time::Duration::from_secs(5);
    bench.store.check(until).unwrap();
    assert!(bench.store.listen(until).unwrap().is_some());
    let cooldown = stanchion::protocol::Release {
        cooldown: Some(std::time::Duration::from_millis(700)),
        acquire_resent: true,
        own_fence: None,
        ..release(9)
    };
    let calls = [
        (Request::AcquireAll(all(&["b", "c"])), "all granted"),
        (Request::Holder(holder()), "Lease"),
        (Request::Extend(extend(1, 60_000)), "extended"),
        (Request::Acquire(wait(4, 9)), "waiting"),
        (Request::Release(release(1)), "released"),
        (Request::Acquire(wait(2, 6)), "granted"),
        (Request::Resume(resume(2, 3)), "resumed"),
        (Request::Leave(leave(3)), "left"),
        (Request::Acquire(wait(4, 9)), "granted"),
        (Request::BreakLease(break_lease()), "broken"),
        (Request::Acquire(acquire(9)), "granted"),
        (Request::Release(cooldown), "released"),
    ];
    for (request, expected) in calls {
        let reply = describe(&bench.call(request.clone()).unwrap());
        assert!(reply.starts_with(expected), "{}: {reply}", request.verb());
    }
    let (_, names) = bench.store.list(stanchion::LockKind::Exclusive, 0, until).unwrap();
    assert_eq!(names.len(), 3, "the cooldown is listed, too");
}

/// What is not needed is not granted: nothing that holds up, cuts off, watches or empties what is everybody's.
#[test]
fn the_documented_rule_grants_nothing_that_others_would_feel() {
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {ACL_RULE}")).start();
    let mut app =
        redis::Client::open(server.url_as("app", "c4n4ry-pa55w0rd")).unwrap().get_connection().unwrap();
    let mut ask = |line: &str| {
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query::<redis::Value>(&mut app)
    };
    let refused = [
        "CLIENT PAUSE 1",
        "CLIENT UNPAUSE",
        "CLIENT KILL ID 1",
        "CLIENT LIST",
        "CLIENT INFO",
        "CLIENT NO-EVICT on",
        "CLIENT UNBLOCK 1",
        "CLIENT REPLY OFF",
        "CLIENT TRACKING on",
        "CLIENT SETNAME x",
        "CONFIG GET *",
        "CONFIG SET maxmemory 1",
        "FLUSHALL",
        "FLUSHDB",
        "SWAPDB 0 1",
        "KEYS *",
        "DEBUG SLEEP 0",
        "SHUTDOWN NOSAVE",
        "MONITOR",
        "SAVE",
        "BGREWRITEAOF",
        "REPLICAOF NO ONE",
        "FAILOVER",
        "ACL LIST",
        "ACL WHOAMI",
        "SCRIPT FLUSH",
        "SCRIPT KILL",
        "FUNCTION FLUSH",
        "SLOWLOG RESET",
        "LATENCY RESET",
        "MEMORY PURGE",
        "CLUSTER RESET",
        "MODULE LIST",
        "COMMAND",
        "PUBSUB CHANNELS",
        "PSUBSCRIBE *",
        "RENAME Lock:a Lock:b",
        "MIGRATE h 1 Lock:a 0 1",
        "WAIT 1 1",
        "ECHO x",
        "SUBSCRIBE other",
        "GET other",
    ];
    for line in refused {
        let error = ask(line).expect_err(line);
        // DEBUG is refused to everybody, by its own setting.
        // Older servers do not know all of these commands.
        let said = error.to_string();
        let is_refused = error.code() == Some("NOPERM")
            || said.contains("command not allowed")
            || said.contains("unknown command");
        assert!(is_refused, "{line}: {error}");
    }
    for line in ["PING", "SELECT 1", "SELECT 0", "HELLO 2", "INFO server", "TIME", "GET Lock:a"] {
        assert!(ask(line).is_ok(), "{line}");
    }
    // In another database, and on a connection that was asked whether it still works.
    let url = format!("{}/3", server.url_as("app", "c4n4ry-pa55w0rd"));
    let client = stanchion::Client::builder(&url).open_blocking().unwrap();
    client.lock("a").acquire(stanchion::LockOptions::new()).unwrap().release().unwrap();
}

/// The hint fails, and nothing else: the waiter finds the offer when it polls.
#[test]
fn without_channel_rights_a_release_still_hands_over() {
    let rule = ACL_RULE.replace("&stanchion:wake:*", "resetchannels");
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rule}")).start();
    let mut bench = Bench::at(&server.url());
    bench.set_up(&waited_for());
    bench.store = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
    assert_eq!(describe(&bench.call(Request::Release(release(1))).unwrap()), "released");
    let real = bench.state();
    bench.context.after = bench.time();
    let after = nothing()
        .lock("{T2}", WINDOW)
        .meta(&META.replace("fence 100", "fence {us}"), WEEK)
        .line(&[(2, "900")])
        .waiters(&[(2, "{then-100} 1 {C} 6")]);
    assert_eq!(after.differences(&real, &bench.context), "");
    let failure = bench.store.listen(Clock::System.now() + std::time::Duration::from_secs(5)).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Denied), "the subscription is refused");
}

#[test]
fn without_a_right_a_verb_is_denied_and_changes_nothing() {
    for missing in ["get", "set", "del", "pexpire", "time", "hmget", "zrange", "evalsha"] {
        let rule = ACL_RULE.replace(&format!(" +{missing} "), " ");
        assert_ne!(rule, ACL_RULE, "{missing} is in the rule");
        let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rule}")).start();
        let mut bench = Bench::at(&server.url());
        bench.set_up(&waited_for());
        let app = store(&server.url_as("app", "c4n4ry-pa55w0rd"), bench.context.client);
        let failure = perform(&app, &Request::Release(release(1))).err();
        let real = bench.state();
        bench.context.after = bench.time();
        if let Some(failure) = failure {
            assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Denied), "without {missing}");
            assert!(failure.message.contains("the rule it needs"), "{}", failure.message);
            let differences = waited_for().differences(&real, &bench.context);
            let writes_first = ["set", "hset"].contains(&missing);
            assert!(differences.is_empty() || writes_first, "without {missing}: {differences}");
        } else {
            assert_eq!(missing, "pexpire", "only what release does not use may be missing");
        }
    }
}

#[test]
fn a_foreign_prefix_is_denied_and_named() {
    let rule = ACL_RULE.replace("~Lock:*", "~Other:*");
    let server = RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rule}")).start();
    let app = store(&server.url_as("app", "c4n4ry-pa55w0rd"), 1);
    let failure = perform(&app, &Request::Acquire(acquire(1))).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Denied));
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

#[test]
fn scripts_are_taught_again_after_script_flush_in_every_way_of_calling() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url());
    let until = || Clock::System.now() + std::time::Duration::from_secs(5);
    let flush = || assert_eq!(server.cli(&["SCRIPT", "FLUSH", "SYNC"]), "OK");
    flush();
    assert!(describe(&perform(&bench.store, &Request::Acquire(acquire(1))).unwrap()).starts_with("granted"));
    flush();
    let requests = [
        Request::Extend(extend(1, 9_000)),
        Request::Holder(holder()),
        Request::Extend(extend(2, 9_000)),
        Request::Release(release(1)),
        Request::Holder(holder()),
    ];
    let mut replies = Vec::new();
    bench.store.perform_all(&requests, until(), &mut |_, reply| replies.push(reply));
    let replies: Vec<_> = replies.iter().map(|reply| describe(reply.as_ref().unwrap())).collect();
    assert_eq!(replies[0], "extended 9000");
    assert!(replies[1].starts_with("Lease") && replies[2].starts_with("gone"), "{replies:?}");
    assert_eq!(replies[3..], ["released", "free"]);
    flush();
    let request = Request::Acquire(acquire(3));
    let reply = stanchion_tests::faces::runtime().block_on(bench.store.perform_async(&request, until()));
    assert!(describe(&reply.unwrap()).starts_with("granted"));
}
