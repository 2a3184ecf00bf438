//! Signals to `stanchion run`, and its sudden death.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use stanchion_tests::wait::{eventually, task};

use super::harness::{LONG, Place, Running, goes_away, is_gone};

#[test]
fn signals_are_passed_on_to_the_command() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        let place = Place::new();
        let name = signal.as_str().trim_start_matches("SIG");
        let script = format!("trap 'exit 42' {name}; echo > ready; while :; do sleep 0.01; done");
        let running = place.hold(&[], &script);
        place.line("ready");
        running.signal(signal);
        let outcome = running.finish();
        assert_eq!((outcome.code, &*outcome.err), (42, ""), "{signal}");
        place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
    }
}

#[test]
fn a_signal_that_ends_the_command_is_in_the_exit_code() {
    let place = Place::new();
    let running = place.hold(&[], "exec sleep 600");
    running.signal(Signal::SIGTERM);
    let outcome = running.finish();
    assert_eq!((outcome.code, &*outcome.err), (143, ""));
}

#[test]
fn a_signal_ends_the_wait_for_the_lock() {
    let place = Place::new();
    let holder = place.hold(&[], "exec sleep 600");
    let waiter = place.start(&["run", "-w", "50", "a", "--", "touch", "ran"]);
    eventually(LONG, || place.shown()["waiters"] == 1);
    let sent = Instant::now();
    waiter.signal(Signal::SIGTERM);
    let outcome = waiter.finish();
    assert_eq!((outcome.code, &*outcome.err), (143, ""));
    assert!(sent.elapsed() < Duration::from_secs(10));
    assert!(!place.path("ran").exists());
    drop(holder);
}

#[test]
fn what_was_ignored_stays_ignored() {
    let place = Place::new();
    let program = place.stanchion(&["run"]).get_program().to_owned();
    let script =
        "trap '' HUP; exec \"$0\" run a -- sh -c 'echo $$ > started; until [ -e go ]; do sleep 0.01; done'";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program).current_dir(place.path("."));
    shell.env("STANCHION_URL", format!("sqlite:{}", place.path("locks.db").display()));
    let running = Running::start(shell);
    let command = place.pid("started");
    running.signal(Signal::SIGHUP);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(command), Signal::SIGHUP).unwrap();
    place.touch("go");
    running.finish().succeeded();
}

#[test]
fn a_killed_run_takes_its_command_along_and_the_lock_comes_free() {
    let place = Place::new();
    let ttl = Duration::from_secs(2);
    let mut running = place.hold(&["--ttl", "2"], "exec sleep 600");
    let command = place.pid("started");
    let killed = Instant::now();
    running.signal(Signal::SIGKILL);
    running.wait();
    goes_away(command);
    place.finish(&["run", "-w", "50", "a", "--", "true"]).succeeded();
    // The ttl, the grant window, and a loaded machine.
    assert!(killed.elapsed() < ttl + Duration::from_secs(6), "{:?}", killed.elapsed());
}

#[test]
fn a_run_that_was_stopped_for_too_long_stops_its_command() {
    let place = Place::new();
    let running = place.hold(&["--ttl", "4.5"], "exec sleep 600");
    let command = place.pid("started");
    running.signal(Signal::SIGSTOP);
    // Once the next one has the lock, the lease is surely over.
    let next = place.start(&["run", "-w", "50", "a", "--", "sh", "-c", "echo > next; exec sleep 600"]);
    place.line("next");
    assert!(!is_gone(command));
    running.signal(Signal::SIGCONT);
    running.finish().failed(3);
    assert!(is_gone(command));
    // The new holder is not disturbed.
    assert_eq!(place.shown()["held_as"], "lease");
    drop(next);
}

/// In a terminal, by a shell with job control.
#[test]
fn ctrl_z_stops_the_command_and_fg_continues_it() {
    for verb in [&["run", "a"][..], &["work", "q", "--until-empty"]] {
        let place = Place::new();
        place.finish(&["enqueue", "q", "x"]).succeeded();
        // It starts nothing meanwhile: a shell that is stopped while it does is not seen as stopped.
        let command = "echo $$ > started; read line < go; echo done";
        let mut pipe = Command::new("mkfifo");
        pipe.arg(place.path("go"));
        Running::start(pipe).finish().succeeded();
        let job = place.stanchion(verb).get_program().to_str().unwrap().to_owned();
        let words = [&[&*job], verb, &["--", "sh", "-c", "\"$0\""]].concat().join(" ");
        let shell = format!("{words}; echo > stopped; until [ -e continue ]; do :; done; fg");
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut session = Command::new("setsid");
        session.args(["--ctty", "sh", "-m", "-c", &shell, command]).current_dir(place.path("."));
        session.env("STANCHION_URL", place.url()).stdin(terminal.slave);
        let session = Running::start(session);
        let command = place.pid("started");
        let state = |pid: i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        };
        nix::unistd::write(&terminal.master, b"\x1a").unwrap();
        // The shell has seen that its job is stopped.
        place.line("stopped");
        eventually(LONG, || state(command) == Some('T'));
        place.touch("continue");
        eventually(LONG, || state(command) != Some('T'));
        let go = place.path("go");
        task(move || fs::write(go, "\n").unwrap()).join_within(LONG);
        let outcome = session.finish();
        assert!(outcome.code == 0 && outcome.out.contains("done\n"), "{verb:?} {outcome:?}");
    }
}
