//! The end of `stanchion work`, asked for or not, and claims that are lost.

use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::json;
use stanchion_tests::RedisServer;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, Running, goes_away, is_gone, on_both_stores};

/// Writes the command's pid to a file named after the task, then goes on.
fn script(rest: &str) -> String {
    format!("echo $$ > {{}}; {rest}")
}

/// A worker on the queue `q` whose commands wait for the file `go`, or for the file `go-ID`.
fn start(place: &Place, options: &[&str]) -> Running {
    let wait = script("until [ -e go ] || [ -e go-{} ]; do sleep 0.01; done");
    place.start(&[&["work", "q"], options, &["--", "sh", "-c", &wait]].concat())
}

on_both_stores! {
    fn a_signal_drains(place) {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
            place.finish(&["enqueue", "q", "a", "b"]).succeeded();
            let mut worker = start(place, &[]);
            let command = place.pid("a");
            worker.signal(signal);
            // It has no reason to end, and takes nothing more.
            assert!(worker.runs() && !is_gone(command));
            place.touch("go");
            assert_eq!(worker.finish().failed(0), "stanchion: 1 completed, 0 failed, 1 left", "{signal}");
            assert_eq!((&place.task("b")["state"], &place.task("b")["attempts"]), (&json!("ready"), &json!(0)));
            place.finish(&["queues", "purge", "q", "--yes"]).succeeded();
            for file in ["a", "go"] {
                std::fs::remove_file(place.path(file)).unwrap();
            }
        }
    }

    fn an_idle_worker_ends_at_once(place) {
        for (signal, options) in [(Signal::SIGTERM, &[][..]), (Signal::SIGINT, &["-j", "8"])] {
            place.finish(&["enqueue", "q", "a"]).succeeded();
            let worker = start(place, options);
            place.pid("a");
            place.touch("go-a");
            eventually(LONG, || {
                let stats = place.stats();
                stats["acked"] != 0 && stats["claimed"] == 0
            });
            let sent = Instant::now();
            worker.signal(signal);
            worker.finish().failed(0);
            assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
            place.finish(&["queues", "purge", "q", "--yes"]).succeeded();
            for file in ["a", "go-a"] {
                std::fs::remove_file(place.path(file)).unwrap();
            }
        }
    }

    fn ctrl_c_is_for_the_worker_alone(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let mut command = place.stanchion(&["work", "q", "--", "sh", "-c", &script("until [ -e go ]; do sleep 0.01; done")]);
        command.process_group(0);
        let worker = Running::start(command);
        let pid = place.pid("a");
        // What a terminal does: the signal goes to the whole process group.
        killpg(Pid::from_raw(worker.pid()), Signal::SIGINT).unwrap();
        assert!(!is_gone(pid));
        place.touch("go");
        assert_eq!(worker.finish().failed(0), "stanchion: 1 completed, 0 failed, 0 left");
    }

    fn commands_have_a_grace_and_then_go_back_uncounted(place) {
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        let wait = script("trap 'exit 3' TERM; while :; do sleep 0.01; done");
        let worker = place.start(&["work", "q", "--grace", "0.3", "--lease", "600", "--", "sh", "-c", &wait]);
        let command = place.pid("a");
        let stopped = Instant::now();
        worker.signal(Signal::SIGTERM);
        let outcome = worker.finish();
        assert!(outcome.code == 0 && outcome.err.ends_with("stanchion: 0 completed, 0 failed, 2 left\n"), "{outcome:?}");
        assert!(stopped.elapsed() >= Duration::from_millis(300) && is_gone(command), "{:?}", stopped.elapsed());
        for id in ["a", "b"] {
            let task = place.task(id);
            assert_eq!((&task["state"], &task["attempts"]), (&json!("ready"), &json!(0)), "{task}");
        }
    }

    fn a_second_signal_ends_the_grace(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let wait = script("trap 'echo > told' TERM; while :; do sleep 0.01; done");
        let worker = place.start(&["work", "q", "--kill-after", "0.5", "--", "sh", "-c", &wait]);
        let command = place.pid("a");
        worker.signal(Signal::SIGTERM);
        worker.signal(Signal::SIGINT);
        // It is told to end, and killed when it does not.
        place.line("told");
        let outcome = worker.finish();
        assert!([128 + 2, 128 + 15].contains(&outcome.code) && is_gone(command), "{outcome:?}");
        assert_eq!((&place.task("a")["state"], &place.task("a")["attempts"]), (&json!("ready"), &json!(0)));
    }

    fn deploys_under_load_burn_no_attempt_and_double_nothing(place) {
        let ids: Vec<String> = (0..120).map(|number| format!("t{number}")).collect();
        let mut enqueue = vec!["enqueue", "q"];
        enqueue.extend(ids.iter().map(String::as_str));
        place.finish(&enqueue).succeeded();
        // A third of them do not listen to SIGTERM. Two runs of one task at a time are seen by its lock.
        let work = "exec 9>lock-{}; flock -n 9 || echo {} >> overlaps; echo $STANCHION_ATTEMPT >> attempts; \
            case {} in *[147]) trap '' TERM;; esac; sleep 0.2";
        let args = ["work", "q", "-j", "4", "--lease", "600", "--grace", "0.1", "--kill-after", "0.2"];
        let args = [&args[..], &["--", "sh", "-c", work]].concat();
        let begun = || std::fs::read_to_string(place.path("attempts")).map_or(0, |text| text.lines().count());
        for _ in 0..20 {
            let before = begun();
            let worker = place.start(&args);
            eventually(LONG, || begun() > before || place.stats()["ready"] == 0);
            worker.signal(Signal::SIGTERM);
            assert_eq!(worker.finish().code, 0);
            // Nothing is left that would wait for the end of its lease.
            assert_eq!(place.stats()["claimed"], 0);
        }
        let last = [&["work", "q", "-q", "-j", "8", "--until-empty", "--", "sh", "-c"][..], &[work]].concat();
        place.finish(&last).succeeded();
        assert_eq!((&place.stats()["acked"], &place.stats()["dead"]), (&json!(120), &json!(0)));
        let attempts = std::fs::read_to_string(place.path("attempts")).unwrap();
        assert!(attempts.lines().all(|attempt| attempt == "1"), "an attempt was burnt: {attempts}");
        assert!(attempts.lines().count() > 120, "no run was stopped");
        assert!(!place.path("overlaps").exists(), "two ran at a time");
    }

    fn a_third_signal_kills_and_puts_back(place) {
        place.finish(&["enqueue", "q", "a", "b", "c"]).succeeded();
        let wait = script("trap '' TERM INT; (sleep 600 & echo $! > orphan-{}); while :; do sleep 0.01; done");
        let worker = place.start(&["work", "q", "-j", "2", "--kill-after", "600", "--", "sh", "-c", &wait]);
        let pids = ["a", "b", "orphan-a", "orphan-b"].map(|file| place.pid(file));
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            worker.signal(signal);
        }
        let outcome = worker.finish();
        // They may have been caught together, in any order.
        assert!([128 + 1, 128 + 2, 128 + 15].contains(&outcome.code), "{outcome:?}");
        assert!(outcome.err.ends_with("stanchion: 0 completed, 0 failed, 3 left\n"), "{outcome:?}");
        assert!(pids.into_iter().all(is_gone));
        for id in ["a", "b", "c"] {
            let task = place.task(id);
            assert_eq!((&task["state"], &task["attempts"]), (&json!("ready"), &json!(0)), "{task}");
        }
    }

    fn a_killed_workers_tasks_come_back_when_the_lease_ends(place) {
        let lease = Duration::from_secs(4);
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        let mut worker = start(place, &["-j", "2", "--lease", "4"]);
        let commands = ["a", "b"].map(|file| place.pid(file));
        let killed = Instant::now();
        worker.signal(Signal::SIGKILL);
        worker.wait();
        commands.into_iter().for_each(goes_away);
        assert_eq!(place.stats()["claimed"], 2);
        let next = place.finish(&["work", "q", "-q", "--until-empty", "-j", "2", "--", "sh", "-c", "echo {} $STANCHION_ATTEMPT"]);
        let mut lines: Vec<&str> = next.succeeded().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a 2", "b 2"]);
        // Not long before the lease's end, and soon after it even on a loaded machine.
        assert!(killed.elapsed() > lease / 2, "{:?}", killed.elapsed());
        assert!(killed.elapsed() < lease + Duration::from_secs(8), "{:?}", killed.elapsed());
    }

    fn a_lost_claim_stops_its_command_and_no_other(place) {
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        let wait = script("(sleep 600 & echo $! > orphan-{}); sleep 600 & echo $! > child-{}; \
            until [ -e go ]; do sleep 0.01; done; kill $! $(cat orphan-{})");
        let worker = place.start(&["work", "q", "-j", "2", "--until-empty", "--lease", "6", "--", "sh", "-c", &wait]);
        let pids = |id: &str| [id.to_owned(), format!("orphan-{id}"), format!("child-{id}")].map(|file| place.pid(&file));
        let (lost, others) = (pids("a"), pids("b"));
        place.finish(&["queues", "remove", "q", "a"]).succeeded();
        lost.into_iter().for_each(goes_away);
        assert!(others.into_iter().all(|pid| !is_gone(pid)));
        place.touch("go");
        let outcome = worker.finish();
        assert!(outcome.err.contains("task \"a\": the task was removed"), "{outcome:?}");
        assert!(outcome.err.ends_with("stanchion: 1 completed, 0 failed, 1 lost, 0 left\n"), "{outcome:?}");
        assert_eq!((outcome.code, &place.stats()["acked"]), (0, &json!(1)));
    }

    fn a_command_that_runs_for_too_long_is_stopped(place) {
        let wait = script("trap '' TERM; while :; do sleep 0.01; done");
        let args = ["work", "q", "--until-empty", "--max-run", "2", "--kill-after", "0.2", "--lease", "60", "--", "sh", "-c", &wait];
        let (id, outcome, task) = place.fails_once(&args);
        assert!(is_gone(place.pid(&id)));
        assert!(outcome.code == 0 && outcome.err.ends_with("0 completed, 1 failed, 1 left\n"), "{outcome:?}");
        assert_eq!((&task["reason"], &task["attempts"]), (&json!("stopped: it has run for too long"), &json!(1)));
    }

    fn a_worker_that_was_stopped_for_too_long_stops_its_command(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let worker = start(place, &["--until-empty", "--lease", "3"]);
        let command = place.pid("a");
        worker.signal(Signal::SIGSTOP);
        // Once the next one has the task, the claim is surely lost.
        let next = place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "echo $STANCHION_ATTEMPT"]);
        assert_eq!(next.succeeded(), "2\n");
        assert!(!is_gone(command));
        worker.signal(Signal::SIGCONT);
        assert!(worker.finish().err.contains("1 lost, 0 left"));
        assert!(is_gone(command));
        assert_eq!(place.stats()["acked"], 1);
    }
}

#[test]
fn a_command_does_not_outlive_its_claim_when_the_store_is_silent() {
    let lease = Duration::from_secs(4);
    let server = RedisServer::start();
    let place = Place::with_url(&server.url());
    place.finish(&["enqueue", "q", "a"]).succeeded();
    let wait = script("trap 'echo > told' TERM; echo > ready; while :; do sleep 0.01; done");
    let args = ["work", "q", "--lease", "4", "--kill-after", "30", "--timeout", "1", "--", "sh", "-c", &wait];
    let worker = place.start(&args);
    place.line("ready");
    let command = place.pid("a");
    server.stop_signal();
    let frozen = Instant::now();
    place.line("told");
    goes_away(command);
    assert!(frozen.elapsed() < lease * 2, "{:?}", frozen.elapsed());
    assert!(frozen.elapsed() > lease / 4, "{:?}", frozen.elapsed());
    server.cont_signal();
    worker.signal(Signal::SIGTERM);
    assert!(worker.finish().err.contains("not renewed"));
}

#[test]
fn what_others_have_started_is_left_alone() {
    let place = Place::new();
    place.finish(&["enqueue", "q", "a"]).succeeded();
    let program = place.stanchion(&["x"]).get_program().to_owned();
    let script = "sleep 600 >/dev/null 2>&1 & echo $! > stranger; \
                  exec \"$0\" work q --until-empty --lease 6 -- sh -c 'echo $$ > started; exec sleep 600'";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(program).current_dir(place.path("."));
    shell.env("STANCHION_URL", format!("sqlite:{}", place.path("locks.db").display()));
    let running = Running::start(shell);
    let (stranger, command) = (place.pid("stranger"), place.pid("started"));
    place.finish(&["queues", "remove", "q", "a"]).succeeded();
    assert!(running.finish().err.contains("1 lost"));
    assert!(is_gone(command) && !is_gone(stranger));
    kill(Pid::from_raw(stranger), Signal::SIGKILL).unwrap();
}
