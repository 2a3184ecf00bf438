//! With memory full, what takes memory fails whole and typed; what gives memory back works.

use stanchion::ErrorKind;
use stanchion::protocol::{FailureKind, Release, Request};
use stanchion_tests::RedisServer;

use crate::acquire_all::all;
use crate::case::{Bench, acquire, break_lease, describe, extend, holder, leave, release, wait};
use crate::state::{State, WEEK, WINDOW, nothing};

const META: &str = "fence 100, born 50, owner x, since 1, calm_until 0, wait_until {then+2400}";
const LINE: [(u128, &str); 1] = [(2, "900")];

pub fn bench(server: &RedisServer, state: &State) -> Bench {
    server.config_set("maxmemory", "0");
    server.cli(&["FLUSHALL"]);
    // A script the server does not know yet would take memory itself.
    for (_, script) in stanchion::store::redis::script::SCRIPTS.all() {
        server.cli(&["SCRIPT", "LOAD", &script.text]);
    }
    let mut bench = Bench::at(&server.url());
    bench.set_up(state);
    server.config_set("maxmemory", "1");
    let full = redis::cmd("SET").arg("x").arg("y").exec(&mut bench.raw).unwrap_err();
    assert!(full.to_string().contains("OOM"), "{full}");
    bench
}

fn waited_for(value: &str) -> State {
    nothing().lock(value, 30_000).meta(META, WEEK).line(&LINE).waiters(&[(2, "{then-100} 0 {C} 6")])
}

/// A server of its own, since a full server disturbs everybody. Evicts nothing, as is the default.
pub fn server() -> RedisServer {
    RedisServer::builder().arg("--maxmemory-policy", "noeviction").start()
}

#[test]
fn an_acquire_fails_whole_in_every_situation() {
    let server = server();
    let line = |state: State, entry| state.meta(META, WEEK).line(&LINE).waiters(&[(2, entry)]);
    let cases = [
        ("free", nothing(), Request::Acquire(acquire(1))),
        ("free, and another", nothing(), Request::AcquireAll(all(&["a", "b"]))),
        ("free with a record", nothing().meta(META, WEEK), Request::Acquire(acquire(1))),
        ("free, to be offered", line(nothing(), "{then-100} 0 {C} 6"), Request::Acquire(acquire(1))),
        ("free, at the head", line(nothing(), "{then-100} 0 {C} 6"), Request::Acquire(wait(2, 6))),
        ("free, behind the dead", line(nothing(), "{then-2600} 0 {C} 6"), Request::Acquire(acquire(1))),
        ("busy, to wait for", nothing().lock("{T3}", 30_000), Request::Acquire(wait(1, 5))),
        ("offered", line(nothing().lock("{T2}", 30_000), "{then-100} 1 {C} 6"), Request::Acquire(wait(2, 6))),
    ];
    for (situation, state, request) in cases {
        let mut bench = bench(&server, &state);
        let failure = bench.call(request).expect_err(situation);
        assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable), "{situation}");
        assert!(failure.message.contains("memory"), "it says why: {}", failure.message);
        let real = bench.state();
        bench.context.after = bench.time();
        assert_eq!(state.differences(&real, &bench.context), "", "{situation}");
    }
}

#[test]
fn a_try_on_a_busy_lock_is_still_answered() {
    let server = server();
    let mut bench = bench(&server, &waited_for("{T3}"));
    let reply = bench.call(Request::Acquire(acquire(1))).unwrap();
    assert!(describe(&reply).starts_with("busy"));
    assert!(describe(&bench.call(Request::Holder(holder())).unwrap()).starts_with("Lease"));
}

#[test]
fn extend_release_leave_and_break_work_and_hand_over() {
    let server = server();
    let offered = |adds: &str| {
        nothing()
            .lock("{T2}", WINDOW)
            .meta(&format!("{}{adds}", META.replace("fence 100", "fence {us}")), WEEK)
            .line(&LINE)
            .waiters(&[(2, "{then-100} 1 {C} 6")])
    };
    let ended = ", calm_until 0, ended_until {now+60000}";
    let resent = Release { acquire_resent: true, ..release(1) };
    let cases = [
        (Request::Release(release(1)), "released", offered("")),
        (Request::Release(resent), "released", offered(ended).ended(1)),
        (Request::Leave(leave(1)), "left", offered(ended).ended(1)),
        (Request::BreakLease(break_lease()), "broken", offered(", broken 100")),
    ];
    for (request, reply, after) in cases {
        let mut bench = bench(&server, &waited_for("{T1}"));
        assert_eq!(describe(&bench.call(request).unwrap()), reply);
        let real = bench.state();
        bench.context.after = bench.time();
        assert_eq!(after.differences(&real, &bench.context), "", "{reply}");
    }
    let mut bench = bench(&server, &waited_for("{T1}"));
    assert_eq!(describe(&bench.call(Request::Extend(extend(1, 90_000))).unwrap()), "extended 90000");
}

#[test]
fn a_release_with_cooldown_works() {
    let server = server();
    for acquire_resent in [false, true] {
        let mut bench = bench(&server, &waited_for("{T1}"));
        let cooldown = Some(std::time::Duration::from_millis(900));
        let request = Request::Release(Release { cooldown, acquire_resent, ..release(1) });
        assert_eq!(describe(&bench.call(request).unwrap()), "released");
        assert!(describe(&bench.call(Request::Holder(holder())).unwrap()).starts_with("Cooldown"));
    }
}

#[test]
fn a_waiter_can_leave_the_line_and_so_can_one_that_never_came() {
    let server = server();
    for state in [waited_for("{T3}"), nothing(), nothing().lock("{T3}", 30_000)] {
        let mut bench = bench(&server, &state);
        assert_eq!(describe(&bench.call(Request::Leave(leave(2))).unwrap()), "left");
        assert!(!bench.state().0.contains_key(&crate::state::key("line")));
    }
}

#[test]
fn after_memory_is_freed_everything_works_again() {
    let server = server();
    let mut bench = bench(&server, &nothing());
    assert!(bench.call(Request::Acquire(acquire(1))).is_err());
    server.config_set("maxmemory", "0");
    assert!(describe(&bench.call(Request::Acquire(acquire(1))).unwrap()).starts_with("granted"));
}
