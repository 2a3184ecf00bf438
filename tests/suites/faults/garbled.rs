//! A server that is hostile or broken: whatever it sends, the client answers with an error, keeps its
//! process alive, and does not reserve memory for what was only announced.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use stanchion_tests::actor::Actor;
use stanchion_tests::faces::Face;
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, eventually, holds_within, ran_since, task};
use stanchion_tests::{shared, unique};

use crate::{POLL, RESEND, assert_within, fixed, ms, open};

/// How much an actor may grow in all of a test. What is announced is far more.
const GROWTH_KIB: u64 = 64 * 1024;

/// Bytes that no Redis sends.
fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("a huge bulk string", text("$9999999999\r\nabc")),
        ("the hugest bulk string", text("$9223372036854775807\r\n")),
        ("a huge array", text("*2147483647\r\n")),
        ("the hugest array", text("*9223372036854775807\r\n:1\r\n")),
        ("the hugest map", text("%9223372036854775807\r\n")),
        ("a huge set", text("~2147483647\r\n:1\r\n")),
        ("a huge push", text(">2147483647\r\n")),
        ("a huge attribute", text("|2147483647\r\n")),
        ("a huge error", text("!9999999999\r\n")),
        ("a huge verbatim string", text("=9999999999\r\n")),
        ("a negative length", text("$-7\r\n")),
        ("a negative set", text("~-7\r\n")),
        ("a number too many", text(":99999999999999999999999\r\n")),
        ("deep nesting", text(&"*1\r\n".repeat(100_000))),
        ("a truncated array", text("*3\r\n:1\r\n:1000\r\n")),
        ("a truncated string", text("$100\r\nabc")),
        ("a line without end", text(&format!("+{}", "x".repeat(100_000)))),
        ("another type", text("+OK\r\n")),
        ("an array of another shape", text("*3\r\n$1\r\na\r\n*0\r\n$-1\r\n")),
        ("an unknown code", text("*3\r\n:77\r\n:1\r\n:1\r\n")),
        ("a negative fence", text("*3\r\n:1\r\n:-5\r\n:500\r\n")),
        ("an error without a text", text("-\r\n")),
        ("an HTTP answer", text("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")),
        ("noise", (0..=255).cycle().take(5_000).map(|byte: u8| byte.wrapping_mul(167)).collect()),
        ("nothing", Vec::new()),
    ]
}

/// What may come of it; `Internal` is for an error of the server's that is not known.
const ERRORS: [&str; 4] = ["StoreUnavailable", "Corrupt", "Indeterminate", "Internal"];

/// A server that answers whatever it reads with these bytes. Ends with the test process.
fn fake_server(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let bytes = bytes.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while client.read(&mut buffer).is_ok_and(|read| read > 0) {
                    if client.write_all(&bytes).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn word(face: Face) -> &'static str {
    if face == Face::Async { "async" } else { "blocking" }
}

/// The most memory the process has had resident so far, in KiB.
fn peak_kib(actor: &Actor) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", actor.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[track_caller]
fn assert_growth(actor: &Actor, before: u64, what: &str) {
    let growth = peak_kib(actor) - before;
    assert!(growth < GROWTH_KIB, "{what}: the process grew by {growth} KiB");
}

on_both_faces! {
    /// From the first byte on.
    fn garbled_greeting(face) {
        let mut actor = Actor::start(env!("CARGO_BIN_EXE_actor"));
        actor.ok(&format!("connect {} {}", shared().url(), word(face)));
        let before = peak_kib(&actor);
        for (what, bytes) in payloads() {
            let port = fake_server(bytes);
            let begun = Instant::now();
            let reply = actor.ask(&format!("connect redis://127.0.0.1:{port}/?timeout=0.2 {}", word(face)));
            let kind = reply["error"].as_str().unwrap_or_else(|| panic!("{what}: the store opened"));
            assert!(ERRORS.contains(&kind), "{what}: {reply}");
            assert_within(ms(200), begun);
            assert_growth(&actor, before, what);
        }
    }

    /// A reply to an acquire, always, and then never again.
    fn garbled_reply(face) {
        let proxy = Proxy::start(shared());
        let mut actor = Actor::start(env!("CARGO_BIN_EXE_actor"));
        actor.ok(&format!("connect {}?timeout=0.2 {}", proxy.url(), word(face)));
        let before = peak_kib(&actor);
        for (what, bytes) in payloads() {
            let name = unique("garbled");
            proxy.fault("acquire", usize::MAX, Fault::Rewrite(bytes));
            let begun = Instant::now();
            let reply = actor.ask(&format!("acquire {name} 60000 0 fixed"));
            let kind = reply["error"].as_str().unwrap_or_else(|| panic!("{what}: granted, {reply}"));
            assert!(ERRORS.contains(&kind), "{what}: {reply}");
            // One sending, and one of the farewell.
            assert_within(2 * RESEND, begun);
            assert_growth(&actor, before, what);
            proxy.behave();
            if !is_typed_nonsense(what) {
                // The store did grant it; whoever was told nonsense gives it back.
                actor.ok(&format!("acquire {name} 60000 3000 fixed"));
                actor.ok("release");
            }
        }
    }

    /// A reply that ends the acquire with an error must not leave the lock held behind it.
    fn corrupt_reply_leaves_no_orphan(face) {
        for (what, bytes) in payloads().into_iter().filter(|(what, _)| is_typed_nonsense(what)) {
            let proxy = Proxy::start(shared());
            let name = unique("corrupt");
            let truth = open(Face::Blocking, &shared().url()).lock(&name);
            proxy.fault("acquire", 1, Fault::Rewrite(bytes));
            open(face, &proxy.url()).lock(&name).try_acquire(fixed(60_000, 0)).unwrap_err();
            let failed = Instant::now();
            let is_free = holds_within(SOON, || !truth.is_locked().unwrap());
            let took = ran_since(failed);
            assert!(is_free && took < RESEND + crate::SLACK, "{what}: the acquire that failed has left the lock held for {took:?}");
        }
    }

    /// The same once: the acquire asks again, and gets the lock.
    fn garbled_reply_once(face) {
        for (what, bytes) in payloads().into_iter().filter(|(what, _)| !is_typed_nonsense(what)).step_by(2) {
            let proxy = Proxy::start(shared());
            let lock = open(face, &proxy.url()).lock(&unique("garbled"));
            proxy.fault("acquire", 1, Fault::Rewrite(bytes));
            let begun = Instant::now();
            let lease = lock.acquire(fixed(5_000, 5_000)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_within(RESEND, begun);
            lease.release().unwrap();
        }
    }

    /// The beginning of another's answer ends a line that had no end: what is left of it is a small number, and no fence.
    fn garbled_reply_before_anothers(face) {
        let proxy = Proxy::start(shared());
        let held = unique("held");
        let truth = open(Face::Blocking, &shared().url());
        let holder = truth.lock(&held).acquire(fixed(60_000, 0)).unwrap();
        let client = open(face, &proxy.url());
        proxy.fault("acquire", 1, Fault::Rewrite(b"+a line without end".to_vec()));
        let garbled = client.lock(&unique("garbled"));
        let garbled = task(move || garbled.acquire(fixed(5_000, 5_000)));
        eventually(SOON, || proxy.performed("acquire") == 1);
        let granted = client.lock(&held).try_acquire(fixed(5_000, 0)).unwrap();
        assert!(granted.is_none(), "granted beside its holder: {granted:?}");
        if let Ok(lease) = garbled.join() {
            lease.release().unwrap();
        }
        holder.release().unwrap();
    }

    /// On the subscriber's connection: the wait goes on by polling.
    fn garbled_subscription(face) {
        // The subscriber's connection has the same parser as the others: some will do.
        for (what, bytes) in payloads().into_iter().step_by(7) {
            let proxy = Proxy::start(shared());
            let name = unique("garbled");
            let truth = open(Face::Blocking, &shared().url()).lock(&name);
            let holder = truth.acquire(fixed(60_000, 0)).unwrap();
            proxy.fault("SUBSCRIBE", usize::MAX, Fault::Rewrite(bytes));
            let lock = open(face, &proxy.url()).lock(&name);
            let waiting = task(move || lock.acquire(fixed(5_000, 60_000)).unwrap());
            eventually(SOON, || truth.waiters() == 1);
            holder.release().unwrap();
            let released = Instant::now();
            let lease = waiting.join();
            let took = ran_since(released);
            assert!(took < POLL + crate::SLACK, "{what}: {took:?}");
            lease.release().unwrap();
        }
    }
}

/// Replies in perfect Redis protocol that make no sense are an error at once: the server is no Redis.
fn is_typed_nonsense(what: &str) -> bool {
    let typed = ["another type", "an array of another shape", "an unknown code", "a negative fence"];
    typed.contains(&what)
        || ["an error without a text", "a negative length", "a negative set"].contains(&what)
}
