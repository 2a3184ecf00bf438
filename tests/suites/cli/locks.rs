//! `stanchion locks`.

use serde_json::Value;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place};

#[test]
fn a_held_lock_is_listed_and_shown() {
    let place = Place::new();
    assert_eq!(place.finish(&["locks", "ls"]).succeeded().lines().count(), 1);
    let holder = place.hold(&["--label", "two words"], "exec sleep 600");
    let listed = place.finish(&["locks", "ls"]);
    let lines: Vec<&str> = listed.succeeded().lines().collect();
    let headings: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(headings.join(" "), "NAME KIND HELD AS LABEL HOST PID FENCE REMAINING WAITERS");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].starts_with("a ") && lines[1].contains("two words"), "{lines:?}");
    assert!(lines[1].contains(&holder.pid().to_string()), "{lines:?}");
    let shown = place.finish(&["locks", "show", "a"]);
    assert!(shown.succeeded().contains("LABEL:     two words\n"), "{shown:?}");
    drop(holder);
}

#[test]
fn json_has_every_field() {
    let place = Place::new();
    let holder = place.hold(&[], "exec sleep 600");
    let waiter = place.start(&["run", "-w", "50", "a", "--", "true"]);
    eventually(LONG, || place.shown()["waiters"] == 1);
    let listed = place.finish(&["locks", "ls", "--json"]);
    let Value::Array(locks) = serde_json::from_str(listed.succeeded()).unwrap() else { panic!("{listed:?}") };
    let shown = place.shown();
    for lock in locks.iter().chain([&shown]) {
        assert_eq!(
            (&lock["name"], &lock["held"], &lock["held_as"]),
            (&"a".into(), &true.into(), &"lease".into())
        );
        assert_eq!((&lock["pid"], &lock["label"]), (&holder.pid().into(), &Value::Null));
        assert!(lock["fence"].as_u64().unwrap() > 0 && lock["since_ms"].as_u64().unwrap() > 0, "{lock}");
        assert!((1..=30_000).contains(&lock["remaining_ms"].as_u64().unwrap()), "{lock}");
        assert_eq!(lock["waiters"], 1);
    }
    assert_eq!(locks.len(), 1);
    drop((holder, waiter));
}

#[test]
fn who_waits_is_shown_in_the_order_of_the_line() {
    let place = Place::new();
    let holder = place.hold(&["--label", "till"], "exec sleep 600");
    let first = place.start(&["run", "-w", "50", "--label", "first in", "a", "--", "true"]);
    eventually(LONG, || place.shown()["waiters"] == 1);
    let second = place.start(&["run", "-w", "50", "a", "--", "true"]);
    eventually(LONG, || place.shown()["line"].as_array().unwrap().len() == 2);
    let shown = place.shown();
    let line = shown["line"].as_array().unwrap();
    assert_eq!((&line[0]["label"], &line[0]["pid"]), (&"first in".into(), &first.pid().into()), "{shown}");
    assert_eq!((&line[1]["label"], &line[1]["pid"]), (&Value::Null, &second.pid().into()), "{shown}");
    assert_eq!((&line[0]["kind"], &line[0]["permits"]), (&"lock".into(), &Value::Null));
    assert!(line[0]["since_ms"].as_u64().unwrap() <= line[1]["since_ms"].as_u64().unwrap(), "{shown}");
    assert!(line[0]["waiting_ms"].as_u64().unwrap() < 60_000, "{shown}");
    let text = place.finish(&["locks", "show", "a"]);
    let rows: Vec<_> = text.succeeded().lines().skip_while(|row| !row.starts_with("WAITER ")).collect();
    assert_eq!(
        rows[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "WAITER KIND LABEL HOST PID WAITING"
    );
    assert!(rows[1].starts_with("1 ") && rows[1].contains("first in"), "{rows:?}");
    assert!(rows[2].starts_with("2 ") && rows[2].contains(&second.pid().to_string()), "{rows:?}");
    assert_eq!(rows.len(), 3);
    drop((holder, first, second));
}

#[test]
fn a_free_lock_is_said_to_be_free() {
    let place = Place::new();
    assert_eq!(place.finish(&["locks", "show", "a"]).succeeded(), "a is free\n");
    assert_eq!(place.shown()["held"], false);
    assert_eq!(place.finish(&["locks", "ls", "--json"]).succeeded(), "[]\n");
}

#[test]
fn break_says_what_it_broke() {
    let place = Place::new();
    assert_eq!(place.finish(&["locks", "break", "a"]).succeeded(), "a was free: nothing to break\n");
    let holder = place.hold(&["--label", "me"], "exec sleep 600");
    let pid = holder.pid();
    let broken = place.finish(&["locks", "break", "a"]);
    assert!(broken.succeeded().starts_with("a broken; it was held by \"me\", pid "), "{broken:?}");
    assert!(broken.out.contains(&pid.to_string()), "{broken:?}");
    place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
    drop(holder);
    place.finish(&["run", "--cooldown", "300", "b", "--", "true"]).succeeded();
    let broken = place.finish(&["locks", "break", "b", "--json"]);
    let broken: Value = serde_json::from_str(broken.succeeded()).unwrap();
    assert_eq!((&broken["broken"], &broken["holder"]["held_as"]), (&true.into(), &"cooldown".into()));
    place.finish(&["run", "-n", "b", "--", "true"]).succeeded();
}

#[test]
fn every_kind_is_listed_with_all_its_holders() {
    let place = Place::new();
    let client = stanchion::blocking::Client::open(place.url()).unwrap();
    let options = stanchion::LockOptions::new;
    let index = client.rw_lock("index");
    let _readers = [index.read().acquire(options()).unwrap(), index.read().acquire(options()).unwrap()];
    let _writer = client.rw_lock("other").write().acquire(options()).unwrap();
    let _permits = client.semaphore("jobs", 5).acquire(options().weight(3)).unwrap();
    let _lock = client.lock("index").acquire(options()).unwrap();
    let listed = place.finish(&["locks", "ls"]);
    let kinds: Vec<_> =
        listed.succeeded().lines().skip(1).map(|line| &line[..line.find(" lease").unwrap()]).collect();
    let kinds: Vec<String> =
        kinds.iter().map(|kind| kind.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        kinds,
        ["index lock", "index reader", "index reader", "other writer", "jobs semaphore (3 permits)"]
    );
    let shown = place.finish(&["locks", "show", "jobs", "--kind", "semaphore", "--json"]);
    let shown: Value = serde_json::from_str(shown.succeeded()).unwrap();
    assert_eq!(
        (&shown["holders"][0]["kind"], &shown["holders"][0]["permits"]),
        (&"semaphore".into(), &3.into())
    );
    place.finish(&["locks", "break", "index", "--kind", "rw_lock"]).succeeded();
    assert_eq!(place.finish(&["locks", "show", "index", "--kind", "rw_lock"]).succeeded(), "index is free\n");
    assert!(place.finish(&["locks", "show", "index"]).succeeded().contains("lease"));
}

#[test]
fn what_turns_the_direction_of_text_is_not_printed() {
    let place = Place::new();
    let turning = |text: &str| text.contains(['\u{202e}', '\u{2066}', '\u{200f}']);
    let holder = place.hold(&["--label", "me\u{202e}em"], "exec sleep 600");
    let [first, second] = ["b\u{2066}\u{200f}", "c\u{202e}"];
    for name in [first, second] {
        place.finish(&["run", "--cooldown", "300", name, "--", "true"]).succeeded();
    }
    for args in
        [&["locks", "ls"][..], &["locks", "show", "a"], &["locks", "show", first], &["locks", "break", "a"]]
    {
        let outcome = place.finish(args);
        assert!(outcome.succeeded().contains('\u{fffd}') && !turning(&outcome.out), "{outcome:?}");
    }
    let busy = place.finish(&["run", "-n", second, "--", "true"]);
    assert!(!turning(busy.failed(1)), "{busy:?}");
    // A bad option with it, and a reason.
    assert!(!turning(place.finish(&["run", "--\u{202e}", "a"]).failed(2)));
    place.finish(&["enqueue", "q", "x\u{202e}"]).succeeded();
    let worked =
        place.finish(&["work", "q", "--until-empty", "--", "sh", "-c", "printf '\u{2066}\\n' >&2; exit 1"]);
    let mut told = worked.err.lines().filter(|line| line.contains("stanchion: "));
    assert!(told.clone().count() > 1 && !told.any(turning), "{worked:?}");
    drop(holder);
}
