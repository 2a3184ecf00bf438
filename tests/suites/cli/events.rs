//! `stanchion queues events`.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use stanchion_tests::RedisServer;
use stanchion_tests::wait::{eventually, eventually_some};

use super::harness::{LONG, Place, Running, on_both_stores};

fn keep(place: &Place, events: &str) {
    place.finish(&["queues", "configure", "q", "--events", events, "-q"]).succeeded();
}

/// The columns of a line.
fn parts_of(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Whether a thread of it stands in a write that nobody reads.
fn writes_into_a_pipe(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stands_in =
        |thread: fs::DirEntry| fs::read_to_string(thread.path().join("wchan")).unwrap_or_default();
    threads.map(stands_in).any(|place| place.contains("pipe"))
}

on_both_stores! {
    fn what_is_kept_is_printed(place) {
        let settings = place.finish(&["queues", "configure", "q", "--events", "100", "-q"]);
        assert!(settings.succeeded().lines().any(|line| line == "EVENTS:      100"), "{settings:?}");
        assert_eq!(place.stats()["settings"]["events"], 100);
        assert_eq!(place.finish(&["queues", "events", "q"]).succeeded(), "", "nothing happened");
        place.finish(&["enqueue", "q", "a b", "--max-attempts", "1"]).succeeded();
        place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "echo broken >&2; exit 5"]);
        let shown = place.finish(&["queues", "events", "q"]);
        let lines: Vec<Vec<&str>> = shown.succeeded().lines().map(parts_of).collect();
        assert_eq!(lines.len(), 3, "{shown:?}");
        let parts: Vec<&[&str]> = lines.iter().map(|line| &line[2..]).collect();
        assert_eq!(parts, [&["added", "a b"][..], &["started", "a b", "attempt 1"], &["dead", "a b", "attempt 1", "exit code 5: broken"]]);
        assert!(lines.iter().all(|line| line[1].len() == "2026-12-24T18:00:00.000Z".len() && line[1].ends_with('Z')), "{shown:?}");

        let events = place.json(&["queues", "events", "q"]);
        assert_eq!(events[0]["number"].to_string(), lines[0][0]);
        assert_eq!((&events[0]["attempt"], &events[0]["reason"], &events[0]["missed"]), (&json!(0), &Value::Null, &json!(false)));
        assert!(events[0]["at_ms"].as_u64() > Some(1_000_000_000_000) && events[0]["version"].as_u64() > Some(0), "{events:?}");
        let dead = &events[2];
        assert_eq!((&dead["what"], &dead["id"], &dead["reason"]), (&json!("dead"), &json!("a b"), &json!("exit code 5: broken")));
        let after = place.json(&["queues", "events", "q", "--after", lines[1][0]]);
        assert_eq!(&after, &events[2..]);
    }

    fn more_than_a_page_is_printed(place) {
        keep(place, "5000");
        let lines: String = (1..=1_234).map(|number| format!("{number}\n")).collect();
        place.feed(&["enqueue", "q", "--lines", "-q"], lines).succeeded();
        assert_eq!(place.json(&["queues", "events", "q"]).len(), 1_234);
    }

    fn what_happens_is_followed_until_a_signal(place) {
        keep(place, "10");
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let mut command = place.stanchion(&["queues", "events", "q", "-f", "--json"]);
        command.stdout(File::create(place.path("events")).unwrap());
        let watcher = Running::start_with_stdout(command);
        let told = |count: usize| -> Vec<Value> {
            let whole = || fs::read_to_string(place.path("events")).ok().filter(|text| text.ends_with('\n') && text.lines().count() >= count);
            eventually_some(LONG, whole).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!(told(1)[0]["id"], "a", "what was kept comes first");
        place.finish(&["enqueue", "q", "b"]).succeeded();
        let second = &told(2)[1];
        assert_eq!((&second["what"], &second["id"]), (&json!("added"), &json!("b")));
        place.finish(&["queues", "remove", "q", "a"]).succeeded();
        assert_eq!(told(3)[2]["what"], "removed");
        watcher.signal(Signal::SIGTERM);
        let outcome = watcher.finish();
        assert_eq!((outcome.code, &*outcome.err), (128 + Signal::SIGTERM as i32, ""), "{outcome:?}");
    }

    fn a_signal_ends_it_also_while_nobody_reads_what_it_prints(place) {
        keep(place, "10000");
        // More than a pipe holds.
        let lines: String = (1..=2_500).map(|number| format!("{number}\n")).collect();
        place.feed(&["enqueue", "q", "--lines", "-q"], lines).succeeded();
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut command = place.stanchion(&["queues", "events", "q", "--follow"]);
        command.stdout(writer);
        let watcher = Running::start_with_stdout(command);
        eventually(LONG, || writes_into_a_pipe(watcher.pid()));
        watcher.signal(Signal::SIGINT);
        assert_eq!(watcher.finish().code, 128 + Signal::SIGINT as i32);
    }

    fn missed_ones_are_reported(place) {
        keep(place, "1");
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let first = place.json(&["queues", "events", "q"])[0]["number"].to_string();
        keep(place, "0");
        keep(place, "10");
        place.finish(&["enqueue", "q", "b"]).succeeded();
        let shown = place.finish(&["queues", "events", "q", "--after", &first]);
        assert!(shown.out.lines().count() == 1 && shown.failed(0).contains("missed"), "{shown:?}");
        let quiet = place.finish(&["queues", "events", "q", "--after", &first, "-q", "--json"]);
        assert!(quiet.succeeded().contains("\"missed\":true"), "{quiet:?}");
    }

    fn a_queue_that_keeps_none_says_how_it_does(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        for args in [&["queues", "events", "q"][..], &["queues", "events", "q", "--follow"]] {
            let refused = place.finish(args);
            assert!(refused.failed(5).contains("`stanchion queues configure \"q\" --events 1000`"), "{refused:?}");
        }
        let unknown = place.finish(&["queues", "events", "unknown"]);
        assert!(unknown.code == 5 && unknown.err.contains("there is no queue \"unknown\""), "{unknown:?}");
    }

    fn a_reader_that_has_seen_enough_ends_it(place) {
        keep(place, "10");
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.stanchion(&["queues", "events", "q", "--follow"]);
        command.stdout(writer);
        let outcome = Running::start_with_stdout(command).finish();
        assert_eq!((outcome.code, &*outcome.err), (0, ""), "{outcome:?}");
    }
}

/// A store that is gone for a while is waited for; one that was never there is not.
#[test]
fn who_follows_goes_on_when_the_server_is_back() {
    let server = RedisServer::builder().appendonly().start();
    let place = Place::with_url(&server.url());
    keep(&place, "10");
    place.finish(&["enqueue", "q", "a"]).succeeded();
    let mut command = place.stanchion(&["queues", "events", "q", "--follow", "--json"]);
    command.stdout(File::create(place.path("events")).unwrap());
    let mut watcher = Running::start_with_stdout(command);
    let printed =
        |id: &str| fs::read_to_string(place.path("events")).unwrap().contains(&format!("\"id\":\"{id}\""));
    eventually(LONG, || printed("a"));
    server.kill9();
    let gone = Instant::now();
    assert!(place.finish(&["queues", "events", "q", "--follow"]).failed(4).contains("cannot reach"));
    // Longer than one of its requests waits.
    eventually(LONG, || !watcher.runs() || gone.elapsed() > Duration::from_secs(7));
    server.start_again();
    place.finish(&["enqueue", "q", "b"]).succeeded();
    eventually(LONG, || printed("b") || !watcher.runs());
    watcher.signal(Signal::SIGTERM);
    let outcome = watcher.finish();
    assert_eq!(outcome.code, 128 + Signal::SIGTERM as i32, "{outcome:?}");
    assert_eq!(outcome.err.matches("waiting for the store").count(), 1, "{outcome:?}");
}

#[test]
fn wrong_arguments_are_refused_before_the_store_is_opened() {
    let place = Place::with_url("redis://127.0.0.1:1/");
    let rows: [(&[&str], &str); 6] = [
        (&["events"], "<QUEUE>"),
        (&["events", "q", "--after", "x"], "--after"),
        (&["events", "q", "--after", "-1"], "-1"),
        (&["events", "q", "--follow=yes"], "--follow"),
        (&["configure", "q", "--events", "100001"], "--events"),
        (&["configure", "q", "--events", "some"], "--events"),
    ];
    for (args, word) in rows {
        let outcome = place.finish(&[&["queues"], args].concat());
        assert!(outcome.failed(2).contains(word), "{args:?}: {outcome:?}");
    }
}
