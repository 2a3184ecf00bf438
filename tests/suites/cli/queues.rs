//! `stanchion queues`.

use serde_json::{Value, json};
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, on_both_stores};

/// Has a task die with this reason.
fn kill(place: &Place, id: &str) {
    place.finish(&["enqueue", "q", id, "--max-attempts", "1", "--payload", "x"]).succeeded();
    place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "echo broken {} >&2; exit 5"]);
    assert_eq!(place.task(id)["state"], "dead");
}

on_both_stores! {
    fn queues_are_listed(place) {
        assert_eq!(place.finish(&["queues", "ls"]).succeeded(), "NAME  READY  CLAIMED  SCHEDULED  DEAD  WAITERS  STATE\n");
        assert_eq!(place.finish(&["queues", "ls", "--json"]).succeeded(), "");
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        place.finish(&["enqueue", "other one", "c", "--delay", "500"]).succeeded();
        place.finish(&["queues", "pause", "q"]).succeeded();
        let listed = place.finish(&["queues", "ls"]);
        let rows: Vec<Vec<&str>> = listed.succeeded().lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1..], [vec!["other", "one", "0", "0", "1", "0", "0", "active"], vec!["q", "2", "0", "0", "0", "0", "paused"]]);
        let listed = place.json(&["queues", "ls"]);
        let shown: Vec<_> = listed.iter().map(|queue| (&queue["queue"], &queue["ready"], &queue["paused"])).collect();
        assert_eq!(shown, [(&json!("other one"), &json!(0), &json!(false)), (&json!("q"), &json!(2), &json!(true))]);
    }

    fn stats_count_everything(place) {
        kill(place, "dead");
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        place.finish(&["enqueue", "q", "later", "--delay", "500"]).succeeded();
        let worker = place.start(&["work", "q", "-q", "--", "sh", "-c", "echo > started; exec sleep 600"]);
        place.line("started");
        let stats = place.stats();
        for (field, count) in [("ready", 1), ("claimed", 1), ("scheduled", 1), ("dead", 1), ("enqueued", 4), ("died", 1)] {
            assert_eq!(stats[field], count, "{field}: {stats}");
        }
        assert_eq!((&stats["queue"], &stats["paused"]), (&json!("q"), &json!(false)));
        let shown = place.finish(&["queues", "stats", "q"]);
        for line in ["CLAIMED:     1\n", "DEAD:        1\n", "MAX LEN:     none\n", "STATE:       active\n"] {
            assert!(shown.succeeded().contains(line), "{shown:?}");
        }
        drop(worker);
        // A queue that nobody has used is empty, not an error.
        assert_eq!(place.json(&["queues", "stats", "unknown"]).remove(0)["ready"], 0);
    }

    fn who_works_is_told(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let command = ["sh", "-c", "echo > started; exec sleep 600"];
        let worker = place.start(&[&["work", "q", "-q", "-j", "2", "--"], &command[..]].concat());
        place.line("started");
        eventually(LONG, || place.stats()["waiters"] == 1);
        let pid = worker.pid();
        let one = place.json(&["queues", "consumers", "q"]).remove(0);
        assert_eq!((&one["pid"], &one["waiters"], &one["claims"]), (&json!(pid), &json!(1), &json!(1)));
        let by = &place.task("a")["claimed_by"];
        assert_eq!((&by["pid"], &by["host"]), (&json!(pid), &one["host"]));
        let shown = place.finish(&["queues", "consumers", "q"]);
        assert!(shown.succeeded().starts_with("LABEL  HOST"), "{shown:?}");
        let shown = place.finish(&["queues", "get", "q", "a"]);
        assert!(shown.succeeded().contains(&format!(" pid {pid}, ")), "{shown:?}");
        drop(worker);
        let none = place.finish(&["queues", "consumers", "unknown"]);
        assert!(none.err.contains("there is no queue \"unknown\""), "{none:?}");
        assert_eq!((none.code, &*none.out), (0, "LABEL  HOST  PID  WAITERS  CLAIMS\n"));
    }

    fn tasks_are_shown_and_not_taken(place) {
        place.finish(&["enqueue", "q", "a", "--payload", &"long ".repeat(20)]).succeeded();
        place.feed(&["enqueue", "q", "b", "--payload", "-", "--priority", "1"], b"\x1b[31m\xff").succeeded();
        place.finish(&["enqueue", "q", "c", "--payload", "\u{1b}[31m"]).succeeded();
        for _ in 0..2 {
            let peeked = place.finish(&["queues", "peek", "q"]);
            let lines: Vec<&str> = peeked.succeeded().lines().collect();
            assert!(lines[0].starts_with("ID  STATE  DUE "), "{lines:?}");
            assert!(lines[1].starts_with("b   ready") && lines[1].contains("base64:G1szMW3/"), "{lines:?}");
            assert!(lines[2].starts_with("a   ready") && lines[2].contains("long long") && lines[2].ends_with('…'));
            assert!(lines[3].contains("\u{fffd}[31m") && !peeked.out.contains('\u{1b}'), "{lines:?}");
        }
        let one = place.json(&["queues", "peek", "q", "-n", "1"]);
        assert_eq!((one.len(), &one[0]["id"], &one[0]["state"]), (1, &json!("b"), &json!("ready")));
        let long = place.finish(&["queues", "get", "q", "a"]);
        assert!(long.succeeded().contains(&format!("PAYLOAD:    {}", "long ".repeat(20))), "{long:?}");
        assert_eq!(place.task("a")["payload"], "long ".repeat(20));
        assert_eq!(place.task("a")["attempts"], 0);
    }

    fn states_are_listed_page_by_page(place) {
        let lines: String = (1..=2_345).map(|number| format!("{number}\n")).collect();
        place.feed(&["enqueue", "q", "--lines", "-q", "--delay", "500"], lines).succeeded();
        kill(place, "dead");
        let ids = |args: &[&str]| -> Vec<Value> {
            let listed = place.json(&[&["queues", "list", "q", "--state"], args].concat());
            listed.into_iter().map(|task| task["id"].clone()).collect()
        };
        assert_eq!(ids(&["scheduled"]).len(), 2_345);
        assert_eq!(ids(&["scheduled", "-n", "1001"]).len(), 1_001);
        // A page without any of them is not the end.
        assert_eq!(ids(&["scheduled", "--prefix", "234"]).len(), 7);
        assert_eq!(ids(&["scheduled", "--prefix", "234", "-n", "3"]).len(), 3);
        assert_eq!(ids(&["ready"]).len(), 0);
        assert_eq!(ids(&["claimed"]).len(), 0);
        assert_eq!(ids(&["dead"]), [json!("dead")]);
        let table = place.finish(&["queues", "list", "q", "--state", "dead"]);
        assert!(table.succeeded().contains("exit code 5: broken dead") && table.out.lines().count() == 2, "{table:?}");
    }

    fn a_task_is_shown_with_everything(place) {
        kill(place, "a");
        let dead = place.task("a");
        assert_eq!(
            (&dead["state"], &dead["attempts"], &dead["max_attempts"], &dead["reason"], &dead["payload"]),
            (&json!("dead"), &json!(1), &json!(1), &json!("exit code 5: broken a"), &json!("x"))
        );
        assert!(dead["died_ms"].as_u64() > Some(0) && dead["receipt"].as_u64() > Some(0), "{dead}");
        place.finish(&["enqueue", "q", "b", "--header", "k=v"]).succeeded();
        let shown = place.finish(&["queues", "get", "q", "b"]);
        for line in ["ID:         b\n", "STATE:      ready\n", "ATTEMPTS:   0 of 20\n", "HEADER:     k=v\n", "PAYLOAD:    \n"] {
            assert!(shown.succeeded().contains(line), "{shown:?}");
        }
        assert!(place.finish(&["queues", "get", "q", "c"]).failed(9).contains("\"c\""));
        let (whole, bare) = (place.task("b"), place.json(&["queues", "list", "q", "--state", "ready", "--no-payloads"]));
        assert_eq!((whole["headers"]["k"].as_str(), &bare[0]["headers"]), (Some("v"), &json!({})));
        assert!(whole["size"].as_u64() >= Some(2) && bare[0]["size"] == whole["size"], "{whole} {bare:?}");
        let bare = place.json(&["queues", "list", "q", "--state", "dead", "--no-payloads"]);
        assert_eq!((&bare[0]["payload"], &bare[0]["size"]), (&json!(""), &dead["size"]));
    }

    fn dead_tasks_are_kicked(place) {
        for id in ["a", "b", "c"] {
            kill(place, id);
        }
        assert_eq!(place.finish(&["queues", "kick", "q", "b"]).succeeded(), "1 tasks kicked\n");
        assert_eq!((&place.task("b")["state"], &place.task("b")["attempts"]), (&json!("ready"), &json!(0)));
        assert_eq!(place.json(&["queues", "kick", "q", "--count", "1"]), [json!({ "queue": "q", "kicked": 1 })]);
        assert_eq!(place.task("a")["state"], "ready", "the oldest one");
        let some = place.finish(&["queues", "kick", "q", "b", "c", "none", "c"]);
        assert_eq!(some.out, "1 tasks kicked\n");
        assert!(some.failed(9).contains("1 of 3 kicked") && some.err.contains("or a live one"), "{some:?}");
        assert_eq!(place.finish(&["queues", "kick", "q", "--count", "9"]).succeeded(), "0 tasks kicked\n");
    }

    fn dead_tasks_are_kicked_by_what_they_have_in_common(place) {
        kill(place, "user:1");
        let older = place.task("user:1")["receipt"].to_string();
        for id in ["user:1", "user:2", "other"] {
            kill(place, id);
        }
        let kick = |args: &[&str]| place.finish(&[&["queues", "kick", "q"], args].concat());
        assert_eq!(kick(&["--receipt", &older]).succeeded(), "1 tasks kicked\n");
        assert_eq!(place.task("user:1")["state"], "ready");
        assert_eq!(kick(&["--reason", "exit", "--older-than", "3600"]).succeeded(), "0 tasks kicked\n");
        assert_eq!(kick(&["--prefix", "user:"]).succeeded(), "1 tasks kicked\n", "the other one lives");
        assert_eq!(place.task("user:2")["state"], "ready");
        assert_eq!(kick(&["--reason", "exit code 5: broken other", "--older-than", "0"]).succeeded(), "1 tasks kicked\n");
        assert_eq!((&place.stats()["ready"], &place.stats()["dead"]), (&json!(3), &json!(1)));
    }

    fn dead_tasks_are_removed(place) {
        for id in ["a", "b", "user:1", "user:2", "c"] {
            kill(place, id);
        }
        let remove = |args: &[&str]| place.finish(&[&["queues", "remove-dead", "q"], args].concat());
        let receipt = place.task("b")["receipt"].to_string();
        assert_eq!(remove(&["a"]).succeeded(), "1 tasks removed\n");
        place.finish(&["queues", "get", "q", "a"]).failed(9);
        let removed = place.json(&["queues", "remove-dead", "q", "--receipt", &receipt]);
        assert_eq!(removed, [json!({ "queue": "q", "removed": 1 })]);
        let none = remove(&["--receipt", &receipt, "--receipt", "7", "--receipt", "7"]);
        assert_eq!(none.out, "0 tasks removed\n");
        assert!(none.failed(9).contains("0 of 2 removed") && !none.err.contains("live one"), "{none:?}");
        assert!(remove(&["user:1", "--reason", "refused"]).failed(9).contains("left out by an option"));
        assert_eq!(remove(&["--prefix", "user:", "--older-than", "3600"]).succeeded(), "0 tasks removed\n");
        let second = ["--prefix", "user:", "--reason", "exit code 5: broken user:2"];
        assert_eq!(remove(&second).succeeded(), "1 tasks removed\n");
        assert_eq!(remove(&["--count", "1"]).succeeded(), "1 tasks removed\n");
        assert_eq!(place.task("c")["state"], "dead", "the oldest one is gone");
        assert_eq!(remove(&["--reason", "exit"]).succeeded(), "1 tasks removed\n");
        assert_eq!(place.stats()["dead"], 0);
    }

    fn a_task_is_removed_if_it_is_the_one_meant(place) {
        let version = place.json(&["enqueue", "q", "a"]).remove(0)["version"].as_u64().unwrap();
        place.finish(&["enqueue", "q", "a", "--on-duplicate", "replace"]).succeeded();
        let old = version.to_string();
        let now = place.task("a")["version"].to_string();
        let refused = place.finish(&["queues", "remove", "q", "a", "--version", &old]);
        assert!(refused.failed(9).contains(&now), "{refused:?}");
        assert_eq!(place.finish(&["queues", "remove", "q", "a", "--version", &now]).succeeded(), "a removed\n");
        assert!(place.finish(&["queues", "remove", "q", "a"]).failed(9).contains("no such live task"));
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let removed = place.json(&["queues", "remove", "q", "a"]);
        assert_eq!(removed, [json!({ "queue": "q", "id": "a", "removed": true })]);
    }

    fn a_paused_queue_gives_nothing_out(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        assert!(place.finish(&["queues", "pause", "q"]).succeeded().starts_with("q paused"));
        let mut worker = place.start(&["work", "q", "--until-empty", "--", "touch", "ran"]);
        assert_eq!(place.stats()["paused"], true);
        assert!(worker.runs() && !place.path("ran").exists());
        assert_eq!(place.json(&["queues", "resume", "q"]), [json!({ "queue": "q", "paused": false })]);
        let outcome = worker.finish();
        assert!(outcome.code == 0 && outcome.err.contains("1 completed") && place.path("ran").exists(), "{outcome:?}");
    }

    fn purge_asks_first(place) {
        kill(place, "dead");
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        place.finish(&["queues", "configure", "q", "--max-len", "7"]).succeeded();
        assert!(place.finish(&["queues", "purge", "q"]).failed(2).contains("--yes"));
        assert_eq!(place.stats()["ready"], 2);
        assert_eq!(place.finish(&["queues", "purge", "q", "--yes"]).succeeded(), "3 tasks dropped\n");
        let stats = place.stats();
        assert_eq!((&stats["ready"], &stats["dead"], &stats["settings"]["max_len"]), (&json!(0), &json!(0), &json!(7)));
        assert_eq!(place.json(&["queues", "purge", "q", "--yes"]), [json!({ "queue": "q", "dropped": 0 })]);
    }

    fn settings_are_changed_one_by_one(place) {
        let shown = place.finish(&["queues", "configure", "q", "--max-len", "5", "--intake", "off", "-q"]);
        assert_eq!(shown.succeeded(),
            "MAX LEN:     5\nDEAD MAX:    10000\nDEAD AGE:    90d00h\nDEAD BYTES:  268435456\nINTAKE:      off\nEVENTS:      0\n\
            MAX RUNNING: none\nRATE:        none\nKEY LIMIT:   none\nKEY RATE:    none\n");
        let args = ["queues", "configure", "q", "--max-len", "none", "--dead-max", "9", "--dead-age", "60", "--dead-bytes", "8"];
        let settings = json!({
            "max_len": null, "dead_max": 9, "dead_age_ms": 60_000, "dead_bytes": 8, "intake": false, "events": 0,
            "max_running": null, "rate": null, "key_concurrency": null, "key_rate": null,
        });
        assert_eq!(place.json(&args)[0], settings);
        assert_eq!(place.stats()["settings"], settings);
    }

    fn limits_are_given_and_taken_away(place) {
        let args = ["queues", "configure", "q", "--max-running", "5", "--rate", "20/s", "--burst", "3", "--key-concurrency", "2",
            "--key-rate", "100/10m"];
        let shown = place.finish(&[&args[..], &["-q"]].concat());
        let shown = shown.succeeded();
        assert!(shown.ends_with("MAX RUNNING: 5\nRATE:        20/s, burst 3\nKEY LIMIT:   2\nKEY RATE:    100/10m\n"), "{shown}");
        let args = ["queues", "configure", "q", "--max-running", "none", "--rate", "none", "--key-rate", "1/500ms", "--key-burst", "4"];
        let settings = &place.json(&args)[0];
        assert_eq!(settings["max_running"], json!(null));
        assert_eq!(settings["rate"], json!(null));
        assert_eq!((&settings["key_concurrency"], &settings["key_rate"]), (&json!(2), &json!({ "count": 1, "per_ms": 500, "burst": 4 })));
    }

    fn keys_are_listed_and_limited(place) {
        place.finish(&["enqueue", "q", "a", "b", "c", "--key", "tenant:7"]).succeeded();
        place.finish(&["enqueue", "q", "x", "--key", "tenant:8"]).succeeded();
        let held: Vec<_> = place.json(&["queues", "list", "q", "--state", "held"]).iter().map(|task| task["id"].clone()).collect();
        assert_eq!(held, ["b", "c"]);
        assert!(place.finish(&["queues", "get", "q", "b"]).succeeded().contains("KEY:        tenant:7\n"));
        let key = json!({ "key": "tenant:7", "running": 0, "in_line": 1, "held": 2, "opens_in_ms": null, "limits": null });
        assert_eq!(place.json(&["queues", "keys", "q"]), std::slice::from_ref(&key));
        let own = place.json(&["queues", "key", "q", "tenant:7", "--concurrency", "2", "--rate", "1/h", "--weight", "3"]);
        assert_eq!(own[0]["limits"], json!({ "concurrency": 2, "rate": { "count": 1, "per_ms": 3_600_000, "burst": 1 }, "weight": 3 }));
        let shown = place.finish(&["queues", "keys", "q"]);
        let shown = shown.succeeded();
        assert!(shown.contains("OWN LIMITS\n") && shown.contains("concurrency 2; rate 1/h; weight 3\n"), "{shown}");
        assert_eq!(place.json(&["queues", "key", "q", "tenant:7", "--clear"]), [key]);
        let asked = place.json(&["queues", "key", "q", "tenant:9"]);
        assert_eq!((&asked[0]["held"], &asked[0]["limits"]), (&json!(0), &json!(null)));
    }

    fn stats_say_why_nothing_moves(place) {
        let why = |place: &Place| -> String {
            let shown = place.finish(&["queues", "stats", "q"]);
            let shown = shown.succeeded();
            let line = shown.lines().find_map(|line| line.strip_prefix("WAITS FOR:   ").map(str::to_owned));
            line.expect("a line")
        };
        place.finish(&["enqueue", "q", "a", "b", "c", "--key", "k"]).succeeded();
        assert_eq!(why(place), "no consumer; 2 tasks held by their keys");
        place.finish(&["queues", "pause", "q"]).succeeded();
        assert_eq!(why(place), "paused; 2 tasks held by their keys");
        place.finish(&["queues", "resume", "q"]).succeeded();
        place.finish(&["queues", "configure", "q", "--rate", "1/30d"]).succeeded();
        let worker = place.start(&["work", "q", "-q", "--until-empty", "--", "true"]);
        eventually(LONG, || why(place).starts_with("its rate, until "));
        assert!(why(place).ends_with("h); 1 task held by its key"), "{}", why(place));
        place.finish(&["queues", "configure", "q", "--rate", "none"]).succeeded();
        assert_eq!(worker.finish().code, 0);
        assert_eq!(why(place), "nothing");
    }
}

#[test]
fn wrong_arguments_are_refused_before_the_store_is_opened() {
    let place = Place::with_url("redis://127.0.0.1:1/");
    let rows: [(&[&str], &str); 33] = [
        (&[], "subcommand"),
        (&["stats"], "<QUEUE>"),
        (&["peek", "q", "-n", "0"], "--count"),
        (&["peek", "q", "-n", "1001"], "--count"),
        (&["list", "q"], "--state"),
        (&["list", "q", "--state", "old"], "old"),
        (&["list", "q", "--state", "dead", "-n", "0"], "--count"),
        (&["get", "q", ""], "empty"),
        (&["get", "q", "a\tb"], "control"),
        (&["kick", "q"], "--older-than"),
        (&["kick", "q", "a", "--count", "1"], "--count"),
        (&["kick", "q", "--count", "0"], "--count"),
        (&["kick", "q", "--receipt", "1", "--count", "1"], "--count"),
        (&["kick", "q", "a\tb"], "control"),
        (&["remove-dead", "q"], "--older-than"),
        (&["remove-dead", "q", "a", "--receipt", "1"], "--receipt"),
        (&["remove-dead", "q", "--receipt", "x"], "--receipt"),
        (&["remove-dead", "q", "--older-than", "x"], "--older-than"),
        (&["remove-dead", "q", ""], "empty"),
        // As of a shell's variable that was never set: nobody means all by it.
        (&["remove-dead", "q", "--prefix", ""], "--prefix"),
        (&["kick", "q", "--reason", ""], "--reason"),
        (&["remove-dead", "q", "--older-than", "-5"], "--older-than"),
        (&["remove", "q", "a", "--version", "x"], "--version"),
        (&["purge", "q"], "--yes"),
        (&["configure", "q"], "--max-len"),
        (&["configure", "q", "--max-len", "0"], "queues pause"),
        (&["configure", "q", "--intake", "maybe"], "--intake"),
        (&["configure", "q", "--dead-age", "40000000"], "--dead-age"),
        (&["configure", "q", "--rate", "20"], "20/s"),
        (&["configure", "q", "--max-running", "0"], "queues pause"),
        (&["configure", "q", "--dead-max", "1", "--burst", "2"], "--rate"),
        (&["key", "q", "k", "--weight", "101"], "--weight"),
        (&["key", "q", ""], "512 bytes"),
    ];
    for (args, word) in rows {
        let outcome = place.finish(&[&["queues"], args].concat());
        assert!(outcome.failed(2).contains(word), "{args:?}: {outcome:?}");
    }
    place.finish(&["queues", "ls"]).failed(4);
}

#[test]
fn bad_names_are_refused() {
    let place = Place::new();
    for name in ["", "a\nb", "{", "{a}{b}"] {
        for args in [
            &["queues", "stats", name][..],
            &["enqueue", name, "a"],
            &["work", name, "--until-empty", "--", "true"],
        ] {
            let outcome = place.finish(args);
            assert_eq!(outcome.code, 2, "{args:?}: {outcome:?}");
        }
    }
}
