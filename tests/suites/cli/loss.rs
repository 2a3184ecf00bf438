//! The lease is lost while the command runs.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stanchion_tests::RedisServer;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, Running, goes_away, is_gone};

#[test]
fn a_broken_lease_stops_the_command() {
    let place = Place::new();
    let running = place.hold(&["--ttl", "4.5"], "exec sleep 600");
    place.finish(&["locks", "break", "a"]).succeeded();
    let outcome = running.finish();
    assert!(outcome.failed(3).contains("broken"), "{outcome:?}");
    assert!(is_gone(place.pid("started")));
}

#[test]
fn the_loss_is_told_as_json() {
    let place = Place::new();
    let running = place.hold(&["--ttl", "4.5", "--json"], "exec sleep 600");
    place.finish(&["locks", "break", "a"]).succeeded();
    let outcome = running.finish();
    let error: Value = serde_json::from_str(&outcome.err).unwrap();
    assert_eq!((outcome.code, &error["error"], &error["code"]), (3, &"LeaseLost".into(), &3.into()));
}

#[test]
fn what_the_command_has_started_is_stopped_too() {
    let place = Place::new();
    // A shell that is told to end leaves its children; one of these has lost its parent already.
    let script = "(sleep 600 & echo $! > orphan); sleep 600 & echo $! > background; sleep 600";
    let running = place.hold(&["--ttl", "4.5"], script);
    let (orphan, background) = (place.pid("orphan"), place.pid("background"));
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    for pid in [orphan, background, place.pid("started")] {
        assert!(is_gone(pid));
    }
}

#[test]
fn what_others_have_started_is_left_alone() {
    let place = Place::new();
    let program = place.stanchion(&["run"]).get_program().to_owned();
    let script = "sleep 600 >/dev/null 2>&1 & echo $! > stranger; \
                  exec \"$0\" run --ttl 4.5 a -- sh -c 'echo $$ > started; exec sleep 600'";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program).current_dir(place.path("."));
    shell.env("STANCHION_URL", format!("sqlite:{}", place.path("locks.db").display()));
    let running = Running::start(shell);
    let (stranger, command) = (place.pid("stranger"), place.pid("started"));
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    assert!(is_gone(command) && !is_gone(stranger));
    kill(Pid::from_raw(stranger), Signal::SIGKILL).unwrap();
}

#[test]
fn a_command_may_clean_up_when_its_lease_is_lost() {
    let place = Place::new();
    let script = "exec 2>/dev/null; trap 'echo cleaned > cleaned; exit 0' TERM; echo > ready; while :; do sleep 0.01; done";
    let running = place.hold(&["--ttl", "4.5", "--kill-after", "50"], script);
    place.line("ready");
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    assert_eq!(place.line("cleaned"), "cleaned");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let place = Place::new();
    let script = "exec 2>/dev/null; trap '' TERM; echo > ready; while :; do sleep 0.01; done";
    let running = place.hold(&["--ttl", "4.5", "--kill-after", "0.2"], script);
    place.line("ready");
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    assert!(is_gone(place.pid("started")));
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_although_the_command_has_ended() {
    let place = Place::new();
    let child = "exec >/dev/null 2>&1; trap '' TERM; echo > ready; while :; do sleep 0.01; done";
    let script = format!("({child}) & echo $! > background; wait");
    let running = place.hold(&["--ttl", "4.5", "--kill-after", "0.5"], &script);
    place.line("ready");
    let background = place.pid("background");
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    assert!(is_gone(background) && is_gone(place.pid("started")));
}

#[test]
fn a_loss_noticed_at_the_end_is_told_unless_the_command_failed() {
    // The renewal after 10 s comes too late to notice it.
    for (code, expected) in [(0, 3), (5, 5)] {
        let place = Place::new();
        let running = place.hold(&[], &format!("until [ -e go ]; do sleep 0.01; done; exit {code}"));
        place.finish(&["locks", "break", "a"]).succeeded();
        place.touch("go");
        assert!(running.finish().failed(expected).contains("broken"));
    }
}

#[test]
fn a_command_does_not_outlive_its_lease_when_the_store_is_silent() {
    let ttl = Duration::from_secs(4);
    let server = RedisServer::start();
    let place = Place::with_url(&server.url());
    let script = "exec 2>/dev/null; trap 'echo > told' TERM; echo > ready; while :; do sleep 0.01; done";
    let running = place.hold(&["--ttl", "4", "--kill-after", "30", "--timeout", "1"], script);
    place.line("ready");
    let command = place.pid("started");
    server.stop_signal();
    let frozen = Instant::now();
    // It is told before, and killed when the lease ends: at most a ttl after the last answer.
    place.line("told");
    goes_away(command);
    // With some time for a loaded machine, but far less than --kill-after.
    assert!(frozen.elapsed() < ttl * 2, "{:?}", frozen.elapsed());
    // Not at the first renewal that got no answer.
    assert!(frozen.elapsed() > ttl / 4, "{:?}", frozen.elapsed());
    assert!(running.finish().failed(3).contains("not renewed"));
}

#[test]
fn a_store_that_comes_back_in_time_does_no_harm() {
    let server = RedisServer::start();
    let place = Place::with_url(&server.url());
    let mut running = place.hold(&["--ttl", "6"], "until [ -e go ]; do sleep 0.01; done");
    let fence = place.shown()["fence"].clone();
    server.stop_signal();
    // Past the first renewal, before the last quarter.
    let renewal = Instant::now() + Duration::from_millis(2_500);
    eventually(LONG, || !running.runs() || Instant::now() > renewal);
    server.cont_signal();
    assert_eq!(place.shown()["fence"], fence);
    place.touch("go");
    running.finish().succeeded();
}

#[test]
fn a_store_that_is_gone_at_the_end_costs_only_a_warning() {
    let server = RedisServer::start();
    let place = Place::with_url(&server.url());
    let running = place.hold(&["--timeout", "3"], "until [ -e go ]; do sleep 0.01; done");
    server.kill9();
    place.touch("go");
    assert!(running.finish().failed(0).contains("comes free"));
}

#[test]
fn a_stopped_command_is_stopped_for_good() {
    let place = Place::new();
    let running = place.hold(&["--ttl", "4.5"], "exec sleep 600");
    let command = place.pid("started");
    kill(Pid::from_raw(command), Signal::SIGSTOP).unwrap();
    place.finish(&["locks", "break", "a"]).succeeded();
    running.finish().failed(3);
    assert!(is_gone(command));
}
