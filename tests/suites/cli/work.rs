//! `stanchion work` while all goes well, and when commands fail.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use stanchion_tests::wait::{eventually, holds_within};

use super::harness::{LONG, Place, Running, on_both_stores};

/// Waits for a file that the test makes.
const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.01; done";

on_both_stores! {
    fn a_command_finds_its_task(place) {
        let id = "$(touch evil); `touch evil` 'a\" *";
        place.finish(&["enqueue", "q", id, "--payload", "line 1\nline 2"]).succeeded();
        let receipt = "[ $STANCHION_RECEIPT -gt 0 ] && echo \"$1|$2|$(cat)|$STANCHION_TASK_ID|$STANCHION_QUEUE|$STANCHION_ATTEMPT\"";
        let outcome = place.finish(&["work", "q", "--until-empty", "--", "sh", "-c", receipt, "sh", "{}", "x{}{}"]);
        assert_eq!(outcome.out, format!("{id}|x{id}{id}|line 1\nline 2|{id}|q|1\n"));
        assert_eq!(outcome.failed(0), "stanchion: 1 completed, 0 failed, 0 left");
        assert!(!place.path("evil").exists());
        assert_eq!(place.stats()["acked"], 1);
    }

    fn a_command_finds_the_headers_of_its_task(place) {
        let script = "printf '%s %s\\n' $STANCHION_MAX_ATTEMPTS \"${STANCHION_HEADERS-none}\"";
        let work = ["work", "q", "-q", "--until-empty", "--", "sh", "-c", script];
        let headers = ["--header", "trace-id=a\"b\nc", "--header", "x y=", "--max-attempts", "7"];
        place.finish(&[&["enqueue", "q", "a"], &headers[..]].concat()).succeeded();
        assert_eq!(place.finish(&work).succeeded(), "7 {\"trace-id\":\"a\\\"b\\nc\",\"x y\":\"\"}\n");
        place.finish(&["enqueue", "q", "b"]).succeeded();
        assert_eq!(place.finish(&work).succeeded(), "20 {}\n");
        // No system would start a command with these, which is no reason not to work.
        let client = stanchion::blocking::Client::open(place.url()).unwrap();
        let long = stanchion::Task::new("c").header("long", "x".repeat(200_000));
        client.queue("q").enqueue(long).unwrap();
        let mut command = place.stanchion(&work);
        command.env("STANCHION_HEADERS", "another task's");
        assert_eq!(Running::start(command).finish().succeeded(), "20 none\n");
    }

    fn receipts_and_attempts_grow(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let script = "echo $STANCHION_ATTEMPT $STANCHION_RECEIPT; [ $STANCHION_ATTEMPT = 2 ]";
        let first = place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", script]);
        let mut printed = first.succeeded().to_owned();
        // The pause after the first failure is at least half a second; then it is ready. On a slow machine it was over
        // before the first worker ended.
        if place.stats()["acked"] == 0 {
            eventually(LONG, || place.stats()["ready"] == 1);
            let second = place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", script]);
            printed.push_str(second.succeeded());
        }
        let numbers: Vec<u64> = printed.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[2]), (4, 1, 2), "{printed}");
        assert!(numbers[3] > numbers[1], "{printed}");
        assert_eq!(place.stats()["acked"], 1);
    }

    fn a_failure_is_kept_with_its_reason(place) {
        let rows = [
            ("exit 3", "exit code 3"),
            ("echo first >&2; echo 'last  one ' >&2; echo >&2; exit 7", "exit code 7: last  one"),
            ("printf unfinished >&2; exit 1", "exit code 1: unfinished"),
            ("kill -KILL $$", "signal 9"),
            ("printf '\\033[31mred' >&2; kill -TERM $$", "signal 15: \u{fffd}[31mred"),
        ];
        for (script, reason) in rows {
            let (id, outcome, task) = place.fails_once(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
            assert_eq!(outcome.code, 0, "{outcome:?}");
            assert!(outcome.err.contains(&format!("task \"{id}\", attempt 1: {reason}\n")), "{outcome:?}");
            assert_eq!((&task["reason"], &task["attempts"]), (&json!(reason), &json!(1)), "{task}");
        }
    }

    fn the_last_failure_is_the_tasks_death(place) {
        place.finish(&["enqueue", "q", "a", "--max-attempts", "1"]).succeeded();
        let outcome = place.finish(&["work", "q", "--until-empty", "--", "false"]);
        assert!(outcome.err.contains("queues kick") && outcome.err.contains("0 completed, 1 failed, 1 dead, 0 left"), "{outcome:?}");
        assert_eq!((place.task("a")["state"].as_str(), outcome.code), (Some("dead"), 0));
        let json = place.finish(&["work", "q", "--until-empty", "--json", "--", "true"]);
        let summary: Value = serde_json::from_str(&json.err).unwrap();
        assert_eq!(summary, json!({ "completed": 0, "failed": 0, "dead": 0, "lost": 0, "left": 0 }));
    }

    fn stdout_and_stderr_are_passed_through(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let outcome = place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "echo out; echo err >&2; printf end >&2"]);
        assert_eq!((outcome.code, &*outcome.out, &*outcome.err), (0, "out\n", "err\nend"));
    }

    fn so_many_run_at_once_and_no_more(place) {
        place.finish(&["enqueue", "q", "1", "2", "3"]).succeeded();
        // Each waits for all three.
        let together = "touch here-{}; until [ -e here-1 ] && [ -e here-2 ] && [ -e here-3 ]; do sleep 0.01; done";
        place.finish(&["work", "q", "-q", "-j", "3", "--until-empty", "--", "sh", "-c", together]).succeeded();
        place.finish(&["enqueue", "q", "1", "2", "3", "4", "5", "6"]).succeeded();
        let alone = "mkdir busy || exit 1; sleep 0.05; rmdir busy";
        place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", alone]).succeeded();
        assert_eq!((&place.stats()["acked"], &place.stats()["retried"]), (&json!(9), &json!(0)));
    }

    fn until_empty_waits_for_the_tasks_of_others(place) {
        place.finish(&["enqueue", "q", "slow"]).succeeded();
        let other = place.start(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", &format!("echo > started; {UNTIL_GO}")]);
        place.line("started");
        place.finish(&["enqueue", "q", "quick"]).succeeded();
        place.finish(&["enqueue", "q", "later", "--delay", "500"]).succeeded();
        let mut worker = place.start(&["work", "q", "--until-empty", "--", "sh", "-c", "echo > {}"]);
        place.line("quick");
        assert!(!holds_within(Duration::from_secs(1), || !worker.runs()), "it ended before the other's task");
        place.touch("go");
        assert_eq!(worker.finish().failed(0), "stanchion: 1 completed, 0 failed, 1 left");
        other.finish().succeeded();
    }

    fn several_queues_are_emptied_together(place) {
        let program = place.stanchion(&["x"]).get_program().to_string_lossy().into_owned();
        place.finish(&["enqueue", "first", "a"]).succeeded();
        place.finish(&["enqueue", "second", "b"]).succeeded();
        // The second queue's task waits until the first one is empty, and puts something into it.
        let script = format!("echo $STANCHION_QUEUE {{}} >> log; [ {{}} != b ] || \
            {{ until grep -q 'first a' log; do sleep 0.01; done; sleep 0.5; {program} enqueue -q first c; }}");
        let outcome = place.finish(&["work", "first", "second", "--until-empty", "--", "sh", "-c", &script]);
        assert_eq!(outcome.failed(0), "stanchion: 3 completed, 0 failed, 0 left");
        let mut log: Vec<String> = fs::read_to_string(place.path("log")).unwrap().lines().map(str::to_owned).collect();
        log.sort();
        assert_eq!(log, ["first a", "first c", "second b"]);
    }

    fn a_payload_that_nobody_reads_does_no_harm(place) {
        place.feed(&["enqueue", "q", "a", "b", "--payload", "-"], vec![b'x'; 1 << 20]).succeeded();
        place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "[ {} = a ] || [ $(wc -c) = 1048576 ]"]).succeeded();
        assert_eq!(place.stats()["acked"], 2);
    }

    fn background_children_do_not_keep_the_task(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let script = "sleep 600 & echo $! > background";
        let mut worker = place.start(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
        assert!(worker.wait().success());
        let mut kill = Command::new("kill");
        kill.arg(place.line("background"));
        Running::start(kill).finish().succeeded();
        assert_eq!(place.stats()["acked"], 1);
    }

    fn a_command_that_cannot_be_started_ends_the_worker(place) {
        fs::write(place.path("plain"), "").unwrap();
        place.finish(&["enqueue", "q", "a", "b", "c"]).succeeded();
        for (command, code, word) in [("no-such-command-at-all", 127, "PATH"), ("./plain", 126, "executed")] {
            let outcome = place.finish(&["work", "q", "-j", "2", "--", command, "{}"]);
            assert_eq!(outcome.code, code, "{outcome:?}");
            assert!([command, word, "put back"].iter().all(|word| outcome.err.contains(word)), "{outcome:?}");
            let stats = place.stats();
            assert_eq!((&stats["ready"], &stats["retried"]), (&json!(3), &json!(0)), "{stats}");
            for id in ["a", "b", "c"] {
                assert_eq!(place.task(id)["attempts"], 0);
            }
        }
    }
}

/// It would not start 300 commands a second otherwise.
#[test]
fn the_file_stays_open_while_commands_are_started() {
    let place = Place::new();
    for id in ["a", "b", "c", "d", "e"] {
        place.finish(&["enqueue", "q", id]).succeeded();
    }
    let file = place.url().trim_start_matches("sqlite:").to_owned();
    let script = "ls -l /proc/$PPID/fd | grep -q \"$0\" && echo open || echo closed";
    let outcome = place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", script, &file]);
    assert_eq!(outcome.succeeded(), "open\n".repeat(5));
}

#[test]
fn wrong_arguments_are_refused_before_the_store_is_opened() {
    let place = Place::with_url("redis://127.0.0.1:1/");
    let rows: [(&[&str], &str); 9] = [
        (&["q"], "<CMD>"),
        (&["--", "true"], "<QUEUE>"),
        (&["q", "--"], "<CMD>"),
        (&["q", "-j", "0", "--", "true"], "--jobs"),
        (&["q", "-j", "1001", "--", "true"], "--jobs"),
        (&["q", "--lease", "0.01", "--", "true"], "--lease"),
        (&["q", "--max-run", "0", "--", "true"], "--max-run"),
        (&["q", "--kill-after", "-1", "--", "true"], "--kill-after"),
        (&["q", "p", "q", "--", "true"], "twice"),
    ];
    for (args, word) in rows {
        let outcome = place.finish(&[&["work"], args].concat());
        assert!(outcome.failed(2).contains(word), "{args:?}: {outcome:?}");
    }
    place.finish(&["work", "q", "--", "true"]).failed(4);
}
