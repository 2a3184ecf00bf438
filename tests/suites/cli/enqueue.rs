//! `stanchion enqueue`.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use stanchion_tests::wait::{eventually, task};

use super::harness::{LONG, Place, Running, on_both_stores};

on_both_stores! {
    fn every_outcome_is_told(place) {
        let told = |options: &[&str], outcome: &str| {
            let args = [&["enqueue", "q", "a"], options].concat();
            assert_eq!(place.finish(&args).succeeded(), format!("{outcome} a\n"), "{options:?}");
        };
        told(&["--delay", "500"], "added");
        told(&[], "kept");
        told(&["--on-duplicate", "skip"], "kept");
        told(&["--on-duplicate", "replace"], "replaced");
        told(&["--on-duplicate", "debounce:60", "--delay", "30"], "replaced");
        assert_eq!(place.task("a")["state"], "scheduled");
        place.finish(&["queues", "remove", "q", "a"]).succeeded();
        told(&["--on-duplicate", "throttle:500"], "added");
        told(&["--on-duplicate", "throttle:500"], "throttled");
        let worker = place.start(&["work", "q", "-q", "--until-empty", "--", "sh", "-c",
            "[ -e started ] || { echo > started; until [ -e go ]; do sleep 0.01; done; }"]);
        place.line("started");
        told(&[], "successor");
        assert_eq!(place.stats()["successors"], 1);
        place.touch("go");
        worker.finish().succeeded();
        assert_eq!((&place.stats()["acked"], &place.stats()["ready"]), (&json!(2), &json!(0)));
    }

    fn options_are_kept_with_the_task(place) {
        place.finish(&["enqueue", "q", "a", "--payload", "größe", "--priority", "7", "--max-attempts", "3",
            "--expires", "500", "--delay", "400", "--header", "k=v=w", "--header", "l="]).succeeded();
        let task = place.task("a");
        assert_eq!(
            (&task["payload"], &task["payload_base64"], &task["priority"], &task["max_attempts"]),
            (&json!("größe"), &Value::Null, &json!(7), &json!(3))
        );
        assert_eq!((&task["headers"], &task["attempts"]), (&json!({ "k": "v=w", "l": "" }), &json!(0)));
        let (due, expires) = (task["due_ms"].as_u64().unwrap(), task["expires_ms"].as_u64().unwrap());
        assert!((99_000..=101_000).contains(&(expires - due)), "{task}");
        assert!((300_000..=400_000).contains(&(due - now_ms())), "{task}");
    }

    fn a_due_time_has_a_zone(place) {
        for (id, due, ms) in [
            ("a", "2099-12-24T18:00:00+01:00", 4_101_814_800_000u64),
            ("b", "2099-12-24T17:00:00.5Z", 4_101_814_800_500),
            ("c", "@4101814800", 4_101_814_800_000),
        ] {
            let told = place.json(&["enqueue", "q", id, "--due", due]).remove(0);
            assert_eq!((&told["id"], &told["outcome"], &told["due_ms"]), (&json!(id), &json!("added"), &json!(ms)));
            assert!(told["version"].as_u64().unwrap() > 0, "{told}");
        }
    }

    fn ids_are_made_if_none_are_given(place) {
        let ids: Vec<String> = (0..2).map(|_| {
            let outcome = place.finish(&["enqueue", "q"]);
            outcome.succeeded().strip_prefix("added ").unwrap().trim_end().to_owned()
        }).collect();
        assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() == 32), "{ids:?}");
        let three = place.finish(&["enqueue", "q", "a", "b", "a"]);
        assert_eq!(three.succeeded(), "added a\nadded b\nkept a\n");
        assert_eq!(place.stats()["ready"], 4);
    }

    fn a_payload_comes_from_stdin_as_it_is(place) {
        place.feed(&["enqueue", "q", "a", "--payload", "-"], b"\x00\xff\n").succeeded();
        let task = place.task("a");
        assert_eq!((&task["payload"], &task["payload_base64"]), (&Value::Null, &json!("AP8K")));
        let too_long = place.feed(&["enqueue", "q", "b", "--payload", "-"], vec![b'x'; (16 << 20) + 1]);
        assert!(too_long.failed(2).contains("bytes"), "{too_long:?}");
        place.finish(&["queues", "get", "q", "b"]).failed(9);
    }

    fn every_line_is_a_task(place) {
        let lines: String = (1..=2_500).map(|number| format!("line {number}\n\n")).collect();
        let first = place.feed(&["enqueue", "q", "--lines"], lines.trim_end());
        assert_eq!((first.code, &*first.out), (0, "2500 added\n"), "{first:?}");
        assert!(first.err.starts_with("stanchion: 2500 tasks sent in ") && first.err.lines().count() == 1);
        let again = place.feed(&["enqueue", "q", "--lines", "--json", "-q"], "line 1\nnew\nline 2500\n");
        let counts: Value = serde_json::from_str(again.succeeded()).unwrap();
        let expected = json!({ "added": 1, "kept": 2, "replaced": 0, "successor": 0, "throttled": 0, "skipped": 0, "full": 0 });
        assert_eq!(counts, expected);
        // In the order of the lines, and the line is the payload.
        let next = place.json(&["queues", "peek", "q", "-n", "2"]);
        let shown: Vec<_> = next.iter().map(|task| (&task["id"], &task["payload"])).collect();
        let [one, two] = [json!("line 1"), json!("line 2")];
        assert_eq!(shown, [(&one, &one), (&two, &two)]);
    }

    fn with_auto_equal_lines_are_different_tasks(place) {
        let outcome = place.feed(&["enqueue", "q", "--lines", "--auto", "-q", "--priority", "9"], b"a\na\n\xff\r\n");
        assert_eq!(outcome.succeeded(), "3 added\n");
        let tasks = place.json(&["queues", "peek", "q"]);
        assert_eq!((tasks.len(), &tasks[0]["payload"], &tasks[2]["payload_base64"]), (3, &json!("a"), &json!("/w0=")));
        assert!(tasks[0]["id"] != tasks[1]["id"] && tasks[0]["priority"] == 9, "{tasks:?}");
        assert_eq!(place.feed(&["enqueue", "q", "--lines", "-q"], "\n\n").succeeded(), "no tasks\n");
    }

    fn a_bad_line_is_named_and_those_before_it_are_sent(place) {
        for (bad, word) in [(&b"tab\there"[..], "control"), (b"\xff", "UTF-8"), (&[b'x'; 513], "512")] {
            let good: String = (1..=1_499).map(|number| format!("{number}\n")).collect();
            let lines = [good.as_bytes(), bad, b"\nlast\n"].concat();
            let outcome = place.feed(&["enqueue", "q", "--lines", "-q"], lines);
            let line = outcome.failed(2);
            assert!(line.contains("line 1500: ") && line.contains(word), "{outcome:?}");
            let ready = place.stats()["ready"].clone();
            assert_eq!(ready, 1_499, "{outcome:?}");
        }
    }

    fn lines_are_sent_as_they_come_and_a_signal_ends_it(place) {
        for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
            let (stdin, mut pipe) = std::io::pipe().unwrap();
            let mut command = place.stanchion(&["enqueue", "q", "--lines", "-q", "--auto"]);
            command.stdin(stdin);
            let running = Running::start(command);
            let before = place.stats()["ready"].as_u64().unwrap();
            pipe.write_all(b"a\n").unwrap();
            eventually(LONG, || place.stats()["ready"] == before + 1);
            pipe.write_all(b"b\nc\nhalf").unwrap();
            eventually(LONG, || place.stats()["ready"] == before + 3);
            running.signal(signal);
            let outcome = running.finish();
            assert_eq!((outcome.code, &*outcome.out), (code, "3 added\n"), "{outcome:?}");
        }
    }

    fn a_line_is_no_longer_than_a_payload(place) {
        let longest = [&b"first\n"[..], &vec![b'x'; 16 << 20], b"\n", &vec![b'x'; (16 << 20) + 1]].concat();
        let outcome = place.feed(&["enqueue", "q", "--lines", "--auto", "-q"], longest);
        assert_eq!(outcome.out, "2 added\n");
        assert!(outcome.failed(2).contains("line 3: it is longer than 16777216 bytes"), "{outcome:?}");
        // One that never ends is not waited for.
        let (stdin, mut pipe) = std::io::pipe().unwrap();
        let mut command = place.stanchion(&["enqueue", "q", "--lines", "-q"]);
        command.stdin(stdin);
        let running = Running::start(command);
        let written = task(move || while pipe.write_all(&[b'x'; 1 << 16]).is_ok() {});
        running.finish().failed(2);
        written.join_within(LONG);
    }

    fn a_full_queue_has_its_code(place) {
        place.finish(&["queues", "configure", "q", "--max-len", "2", "-q"]).succeeded();
        let partly = place.finish(&["enqueue", "q", "a", "b", "c", "a"]);
        assert_eq!(partly.out, "added a\nadded b\nkept a\n");
        let line = partly.failed(8);
        assert!(line.contains("\"c\"") && line.contains("--max-len"), "{partly:?}");
        let lines = place.feed(&["enqueue", "q", "--lines", "-q"], "a\nd\ne\n");
        assert_eq!(lines.out, "1 kept, 2 full\n");
        assert!(lines.failed(8).contains("2 of 3 tasks"), "{lines:?}");
        let json = place.finish(&["enqueue", "q", "d", "--json"]);
        let error: Value = serde_json::from_str(&json.err).unwrap();
        assert_eq!((json.code, &error["error"], &error["code"]), (8, &json!("QueueFull"), &json!(8)));
    }
}

#[test]
fn a_terminal_sees_a_counter() {
    let place = Place::new();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let lines: String = (1..=3_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(place.path("lines"), lines).unwrap();
    let mut command = place.stanchion(&["enqueue", "q", "--lines"]);
    // Without it, or on a dumb one, there is no counter, and the tests may run without any terminal.
    command.env("TERM", "xterm");
    command.stdin(File::open(place.path("lines")).unwrap()).stderr(terminal.slave);
    // Until the last line: other tests' processes may have inherited the terminal, so that it never ends.
    let mut master = File::from(terminal.master);
    let seen = task(move || {
        let (mut seen, mut part) = (String::new(), [0; 1_024]);
        while !seen.contains("tasks sent in ") {
            let read = master.read(&mut part).unwrap();
            seen.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        seen
    });
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3000 added\n");
    let seen = seen.join_within(LONG);
    assert!(seen.starts_with("1000 sent: 1000 added") && seen.contains("\r\u{1b}[2K2000 sent"), "{seen:?}");
}

#[test]
fn wrong_arguments_are_refused_before_the_store_is_opened() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = Place::with_url(&format!("redis://127.0.0.1:{port}/"));
    let long = "x".repeat(513);
    let rows: [(&[&str], &str); 20] = [
        (&[], "<QUEUE>"),
        (&["q", ""], "empty"),
        (&["q", "a\nb"], "control"),
        (&["q", &long], "512"),
        (&["q", "a", "--delay", "-1"], "--delay"),
        (&["q", "a", "--delay", "1e15"], "9999"),
        (&["q", "a", "--due", "tomorrow"], "--due"),
        (&["q", "a", "--due", "2026-12-24T18:00:00"], "--due"),
        (&["q", "a", "--due", "@9", "--delay", "1"], "--delay"),
        (&["q", "a", "--priority", "256"], "--priority"),
        (&["q", "a", "--max-attempts", "0"], "max_attempts"),
        (&["q", "a", "--expires", "0"], "expires"),
        (&["q", "a", "--on-duplicate", "throttle"], "--on-duplicate"),
        (&["q", "a", "--on-duplicate", "debounce:40000000"], "max_wait"),
        (&["q", "a", "--header", "novalue"], "--header"),
        (&["q", "a", "--lines"], "--lines"),
        (&["q", "--lines", "--payload", "x"], "--payload"),
        (&["q", "--lines", "--priority", "-1"], "--priority"),
        (&["q", "--lines", "--expires", "1e9"], "expires"),
        (&["q", "--auto"], "--lines"),
    ];
    for (args, word) in rows {
        let outcome = place.finish(&[&["enqueue"], args].concat());
        assert!(outcome.failed(2).contains(word), "{args:?}: {outcome:?}");
    }
    place.finish(&["enqueue", "q", "a"]).failed(4);
}

fn now_ms() -> u64 {
    let since: Duration = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}
