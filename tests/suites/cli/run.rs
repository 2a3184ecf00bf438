//! `stanchion run` while all goes well, and when the lock is busy.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, Running};

#[test]
fn the_exit_code_is_the_commands() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137)] {
        let outcome = place.finish(&["run", "a", "--", "sh", "-c", script]);
        assert_eq!((outcome.code, &*outcome.err), (code, ""), "{script}");
    }
}

#[test]
fn the_command_has_our_stdio_and_its_arguments() {
    let place = Place::new();
    let mut command = place.stanchion(&[
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "cat; echo \"[$1][$2]\"; echo x >&2",
        "sh",
        "-n",
        "b  c",
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "in\n[-n][b  c]\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "x\n");
}

#[test]
fn the_fence_grows_and_the_name_is_given() {
    let place = Place::new();
    let mut last = 0;
    for _ in 0..5 {
        let outcome = place.finish(&["run", "a", "--", "sh", "-c", "echo $STANCHION_FENCE $STANCHION_LOCK"]);
        let (fence, name) = outcome.succeeded().trim_end().split_once(' ').unwrap();
        let fence: u64 = fence.parse().unwrap();
        assert!(fence > last, "{fence} after {last}");
        assert_eq!(name, "a");
        last = fence;
    }
}

#[test]
fn busy_has_its_code_and_the_command_does_not_run() {
    let place = Place::new();
    let holder = place.hold(&[], "exec sleep 600");
    let marker = ["a", "--", "touch", "ran"];
    let busy = |options: &[&str]| place.finish(&[&["run"], options, &marker].concat());
    assert!(busy(&["-n"]).failed(1).contains("locks show"));
    busy(&["-n", "--conflict-exit-code", "75"]).failed(75);
    busy(&["-w", "0", "-E", "0"]).failed(0);
    let quiet = busy(&["-n", "--quiet"]);
    assert_eq!((quiet.code, &*quiet.err), (1, ""));
    let json = busy(&["-n", "-E", "9", "--json"]);
    let error: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &error["error"], &error["code"]), (9, &"LockTimeout".into(), &9.into()));
    assert!(error["message"].as_str().unwrap().contains("held"), "{error}");
    assert!(!place.path("ran").exists());
    drop(holder);
}

#[test]
fn who_or_what_is_in_the_way_is_told() {
    let place = Place::new();
    let busy = |options: &[&str]| {
        let outcome = place.finish(&[&["run"], options, &["--", "touch", "ran"]].concat());
        outcome.failed(1).to_owned()
    };
    let holder = place.hold(&["--label", "till"], "exec sleep 600");
    let by = format!("run \"a\": the lock is held by \"till\", pid {} on ", holder.pid());
    for (options, end) in [(&["-n", "a"][..], "; did not wait; "), (&["-w", "0.2", "b", "a"], "; waited 0.")]
    {
        let line = busy(options);
        assert!(line.contains(&by) && line.contains(", for ") && line.contains(end), "{line}");
    }
    let reader = place.start(&["run", "--read", "b", "--", "sh", "-c", "echo > reads; exec sleep 600"]);
    place.line("reads");
    assert!(busy(&["-n", "--write", "b"]).contains("locks show --kind rw_lock"));
    place.finish(&["run", "--cooldown", "300", "c", "--", "true"]).succeeded();
    let line = busy(&["-n", "c"]);
    assert!(line.contains("cooling down until 2") && line.contains("Z, for 4m59s more"), "{line}");
    let inner = place.stanchion(&["run"]).get_program().to_str().unwrap().to_owned();
    let nested = place.finish(&["run", "d", "--", &inner, "run", "-n", "d", "--", "touch", "ran"]);
    assert!(nested.failed(1).contains("by the very `stanchion run`"), "{nested:?}");
    assert!(!place.path("ran").exists());
    drop((holder, reader));
}

#[test]
fn a_wait_that_is_too_short_ends_as_busy() {
    let place = Place::new();
    let holder = place.hold(&[], "exec sleep 600");
    let began = Instant::now();
    place.finish(&["run", "-w", "0.3", "a", "--", "true"]).failed(1);
    assert!(began.elapsed() >= Duration::from_millis(300));
    drop(holder);
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() {
    let place = Place::new();
    let holder = place.hold(&[], "until [ -e go ]; do sleep 0.01; done; echo first >> order");
    let waiter = place.start(&["run", "-w", "50", "a", "--", "sh", "-c", "echo second >> order"]);
    eventually(LONG, || place.shown()["waiters"] == 1);
    place.touch("go");
    holder.finish().succeeded();
    waiter.finish().succeeded();
    assert_eq!(fs::read_to_string(place.path("order")).unwrap(), "first\nsecond\n");
}

#[test]
fn runs_exclude_each_other() {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 6;
    let place = Place::new();
    fs::write(place.path("counter"), "0\n").unwrap();
    // Reading, pausing and writing back loses counts unless somebody else is kept out.
    let script = "n=$(cat counter); sleep 0.005; echo $((n + 1)) > counter";
    let args = ["run", "-w", "55", "a", "--", "sh", "-c", script];
    thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| (0..ROUNDS).for_each(|_| assert_eq!(place.finish(&args).succeeded(), "")));
        }
    });
    assert_eq!(place.line("counter"), (PROCESSES * ROUNDS).to_string());
}

#[test]
fn a_short_lease_is_renewed_while_the_command_runs() {
    let place = Place::new();
    let holder = place.hold(&["--ttl", "2.4"], "until [ -e go ]; do sleep 0.01; done");
    let fence = place.shown()["fence"].clone();
    // Twice the ttl.
    let until = Instant::now() + Duration::from_millis(4_800);
    while Instant::now() < until {
        assert_eq!(place.shown()["fence"], fence);
    }
    place.touch("go");
    holder.finish().succeeded();
}

#[test]
fn a_cooldown_keeps_the_lock_closed_after_success_and_failure() {
    for code in ["0", "3"] {
        let place = Place::new();
        let first =
            place.finish(&["run", "--cooldown", "300", "a", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(first.code.to_string(), code, "{first:?}");
        place.finish(&["run", "-n", "a", "--", "true"]).failed(1);
        assert_eq!(place.shown()["held_as"], "cooldown");
        assert!(place.shown()["remaining_ms"].as_u64().unwrap() > 200_000);
    }
}

#[test]
fn a_command_that_cannot_run_leaves_the_lock_free() {
    let place = Place::new();
    fs::write(place.path("plain"), "").unwrap();
    let missing = ["run", "--cooldown", "300", "a", "--", "no-such-command-at-all"];
    assert!(place.finish(&missing).failed(127).contains("no-such-command-at-all"));
    place.finish(&["run", "a", "--", "./plain"]).failed(126);
    place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
}

#[test]
fn the_label_is_shown_to_others() {
    let place = Place::new();
    let holder = place.hold(&["--label", "nightly backup"], "exec sleep 600");
    assert_eq!(place.shown()["label"], "nightly backup");
    drop(holder);
}

#[test]
fn prefixes_separate_locks() {
    let place = Place::new();
    let holder = place.hold(&["--lock-prefix", "app:"], "exec sleep 600");
    place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
    place.finish(&["run", "-n", "--lock-prefix", "app:", "a", "--", "true"]).failed(1);
    drop(holder);
}

#[test]
fn background_children_do_not_keep_the_lock() {
    let place = Place::new();
    let script = "sleep 600 >/dev/null 2>&1 & echo $! > background";
    place.finish(&["run", "a", "--", "sh", "-c", script]).succeeded();
    place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
    let mut kill = std::process::Command::new("kill");
    kill.arg(place.line("background"));
    Running::start(kill).finish().succeeded();
}
