//! `stanchion schedules`.

use serde_json::json;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, on_both_stores};

/// An hourly one, which nothing fires in a test.
const FAR: &str = "every 1000h";

on_both_stores! {
    fn a_schedule_makes_tasks_that_a_worker_gets(place) {
        let added = place.finish(&["schedules", "add", "q", "beat", "every 200ms", "--payload", "tick", "--header", "by=cron"]);
        assert_eq!(added.succeeded(), "added beat\n");
        let script = "cat; echo \" $STANCHION_TASK_ID\"; echo ran >> ran";
        let worker = place.start(&["work", "q", "-q", "--", "sh", "-c", script]);
        eventually(LONG, || std::fs::read_to_string(place.path("ran")).is_ok_and(|ran| ran.lines().count() >= 2));
        assert_eq!(place.finish(&["schedules", "rm", "q", "beat"]).succeeded(), "beat removed\n");
        drop(worker);
        assert_eq!(place.stats()["schedules"], 0);
    }

    fn schedules_are_listed_and_shown(place) {
        assert_eq!(place.finish(&["schedules", "ls", "q"]).succeeded(), "ID  WHEN  TZ  NEXT  STATE  FIRED  OWNER\n");
        let options = ["--tz", "Europe/Berlin", "--missed", "all:5", "--overlap", "skip", "--jitter", "60", "--priority", "3", "--max-attempts", "4", "--expires", "9", "--ends", "2100-01-01T00:00:00Z", "--starts", "2030-01-01T00:00:00Z"];
        place.finish(&[&["schedules", "add", "q", "nightly", "30 2 * * MON-FRI"], &options[..]].concat()).succeeded();
        place.finish(&["schedules", "add", "q", "b", FAR, "--paused"]).succeeded();
        let listed = place.json(&["schedules", "ls", "q"]);
        let shown: Vec<_> = listed.iter().map(|one| (&one["id"], &one["paused"])).collect();
        assert_eq!(shown, [(&json!("nightly"), &json!(false)), (&json!("b"), &json!(true))]);
        let one = place.json(&["schedules", "show", "q", "nightly"]).remove(0);
        for (field, value) in [
            ("when", json!("30 2 * * MON-FRI")), ("tz", json!("Europe/Berlin")), ("missed", json!(5)), ("overlap", json!("skip")),
            ("jitter_ms", json!(60_000)), ("priority", json!(3)), ("max_attempts", json!(4)), ("expires_ms", json!(9_000)),
            ("starts_ms", json!(1_893_456_000_000u64)), ("ends_ms", json!(4_102_444_800_000u64)), ("fired", json!(0)), ("owner", json!(null)),
        ] {
            assert_eq!(one[field], value, "{field}");
        }
        assert_eq!(one["coming_ms"].as_array().unwrap().len(), 3);
        assert_eq!(one["coming_ms"][0], one["next_ms"]);
        let shown = place.finish(&["schedules", "show", "q", "nightly"]);
        for line in ["WHEN:       30 2 * * MON-FRI\n", "TZ:         Europe/Berlin\n", "MISSED:     5\n", "STATE:      active\n"] {
            assert!(shown.succeeded().contains(line), "{shown:?}");
        }
        assert!(place.finish(&["queues", "stats", "q"]).succeeded().contains("SCHEDULES:   2\n"));
        assert!(place.finish(&["metrics", "q"]).succeeded().contains("stanchion_queue_schedules{queue=\"q\"} 2\n"));
    }

    fn put_again_it_is_kept_or_changed(place) {
        let add = |more: &[&str]| place.finish(&[&["schedules", "add", "q", "a", FAR], more].concat()).succeeded().to_owned();
        assert_eq!(add(&[]), "added a\n");
        assert_eq!(add(&[]), "kept a\n");
        assert_eq!(add(&["--priority", "1"]), "changed a\n");
        let json = place.json(&["schedules", "add", "q", "a", FAR]).remove(0);
        assert_eq!(json, json!({ "queue": "q", "id": "a", "outcome": "changed" }));
    }

    fn pause_resume_run(place) {
        place.finish(&["schedules", "add", "q", "a", FAR, "--payload", "now"]).succeeded();
        assert_eq!(place.finish(&["schedules", "pause", "q", "a"]).succeeded(), "a paused\n");
        assert_eq!(place.json(&["schedules", "show", "q", "a"])[0]["next_ms"], json!(null));
        let task = place.json(&["schedules", "run", "q", "a"]).remove(0)["task"].as_str().unwrap().to_owned();
        assert_eq!(place.task(&task)["payload"], "now");
        assert_eq!(place.finish(&["schedules", "resume", "q", "a"]).succeeded(), "a resumed\n");
        assert_ne!(place.json(&["schedules", "show", "q", "a"])[0]["next_ms"], json!(null));
    }

    fn what_is_not_there_is_told(place) {
        for verb in ["show", "rm", "pause", "resume", "run"] {
            let told = place.finish(&["schedules", verb, "q", "nope"]);
            assert!(told.failed(9).contains("schedule \"nope\" of \"q\": there is none"), "{told:?}");
        }
    }
}

#[test]
fn a_preview_needs_no_store() {
    let place = Place::with_url("redis://127.0.0.1:1");
    let slots = place.finish(&[
        "schedules",
        "preview",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "-n",
        "3",
        "--after",
        "2026-03-27T02:00:00Z",
    ]);
    // On 29 March there is no 2:30: it comes when that hour is over.
    assert_eq!(slots.succeeded(), "2026-03-28T01:30:00Z\n2026-03-29T01:00:00Z\n2026-03-30T00:30:00Z\n");
    let json = place.json(&["schedules", "preview", "every 90s", "-n", "1", "--after", "@0"]).remove(0);
    assert_eq!(json, json!({ "slot_ms": 90_000, "slot": "1970-01-01T00:01:30Z" }));
}

#[test]
fn bad_times_are_refused_with_their_place_before_anything_is_sent() {
    let place = Place::with_url("redis://127.0.0.1:1");
    for (args, says) in [
        (&["add", "q", "a", "0 25 * * *"][..], "field 2 (hour) is \"25\""),
        (&["add", "q", "a", "@daily", "--tz", "Mars/Olympus"], "tz: \"Mars/Olympus\""),
        (&["add", "q", "a", "at 2020-01-01T00:00:00Z"], "no slot comes any more"),
        (&["add", "q", "", "@daily"], "id"),
        (&["preview", "every 5 parsecs"], "it takes hours"),
    ] {
        let told = place.finish(&[&["schedules"], args].concat());
        assert!(told.failed(2).contains(says), "{told:?}");
    }
}
