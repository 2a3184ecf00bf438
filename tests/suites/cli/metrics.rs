//! `stanchion metrics`, and `stanchion work --metrics-file`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;
use stanchion::{LockOptions, Task};
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place};

fn samples(place: &Place, queues: &[&str]) -> Value {
    let told = place.finish(&[&["metrics", "--json"], queues].concat());
    serde_json::from_str(told.succeeded()).unwrap()
}

#[test]
fn what_the_store_knows_of_queues_and_locks() {
    let place = Place::new();
    let client = stanchion::blocking::Client::open(place.url()).unwrap();
    let (mail, odd) = (client.queue("mail"), client.queue("a \"b\""));
    for id in ["a", "b"] {
        mail.enqueue(Task::new(id)).unwrap();
    }
    mail.enqueue(Task::new("later").delay(Duration::from_secs(600))).unwrap();
    odd.enqueue(Task::new("x")).unwrap();
    odd.pause().unwrap();
    client.queue("mail").claim(stanchion::ClaimOptions::new()).unwrap().remove(0).bury("no").unwrap();
    let _lock = client.lock("l").acquire(LockOptions::new()).unwrap();
    let _reader = client.rw_lock("l").read().acquire(LockOptions::new()).unwrap();
    let found = samples(&place, &[]);
    let rows = [
        ("stanchion_queue_tasks{queue=\"mail\",state=\"ready\"}", 1.0),
        ("stanchion_queue_tasks{queue=\"mail\",state=\"scheduled\"}", 1.0),
        ("stanchion_queue_tasks{queue=\"mail\",state=\"claimed\"}", 0.0),
        ("stanchion_queue_tasks{queue=\"mail\",state=\"dead\"}", 1.0),
        ("stanchion_queue_tasks_enqueued_total{queue=\"mail\"}", 3.0),
        ("stanchion_queue_tasks_died_total{queue=\"mail\"}", 1.0),
        ("stanchion_queue_paused{queue=\"mail\"}", 0.0),
        ("stanchion_queue_waiters{queue=\"mail\"}", 0.0),
        ("stanchion_queue_paused{queue=\"a \\\"b\\\"\"}", 1.0),
        ("stanchion_locks_held{kind=\"lock\"}", 1.0),
        ("stanchion_locks_held{kind=\"semaphore\"}", 0.0),
        ("stanchion_locks_waiters{kind=\"lock\"}", 0.0),
    ];
    for (name, value) in rows {
        assert_eq!(found[name], value, "{name}: {found}");
    }
    let seconds =
        |name: &str| found[format!("stanchion_queue_{name}_seconds{{queue=\"mail\"}}")].as_f64().unwrap();
    assert!(seconds("next_due") == 0.0 && seconds("head_lateness") < 60.0, "{found}");
    let one = samples(&place, &["mail"]);
    assert_eq!(one["stanchion_queue_paused{queue=\"mail\"}"], 0.0);
    assert!(one.get("stanchion_queue_paused{queue=\"a \\\"b\\\"\"}").is_none());
    let text = place.finish(&["metrics"]);
    assert!(text.succeeded().contains("\n# TYPE stanchion_queue_tasks gauge\n"), "{text:?}");
    let _ = client.lock("l").break_lease();
    assert_eq!(samples(&place, &[])["stanchion_locks_held{kind=\"lock\"}"], 0.0);
}

#[test]
fn an_empty_store_has_metrics_and_one_that_is_away_has_none() {
    let place = Place::new();
    assert!(place.finish(&["metrics"]).succeeded().contains("\nstanchion_locks_held{kind=\"lock\"} 0\n"));
    let dead = Place::with_url("redis://127.0.0.1:1/");
    assert_eq!(dead.finish(&["metrics", "--timeout", "1"]).code, 4);
}

#[test]
fn a_worker_writes_what_it_has_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stanchion.prom");
    let path = path.to_str().unwrap();
    // Until the pause after the failure is not over before the worker ends.
    eventually(LONG, || {
        let place = Place::new();
        for id in ["a", "b", "c"] {
            place.finish(&["enqueue", "q", id]).succeeded();
        }
        let told = place.finish(&[
            "work",
            "--until-empty",
            "--metrics-file",
            path,
            "q",
            "--",
            "sh",
            "-c",
            "test {} != c",
        ]);
        assert_eq!(told.code, 0, "{told:?}");
        place.task("c")["attempts"] == 1
    });
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("\nstanchion_queue_settled_total{queue=\"q\",verdict=\"ack\"} 2\n"), "{text}");
    assert!(text.contains("\nstanchion_queue_settled_total{queue=\"q\",verdict=\"nack\"} 1\n"), "{text}");
    assert!(text.contains("\nstanchion_queue_lateness_seconds_count{queue=\"q\"} 3\n"), "{text}");
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o644,
        "node_exporter is another user"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn the_file_is_there_from_the_beginning_and_a_bad_place_is_refused() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.prom");
    let worker = place.start(&["work", "--metrics-file", path.to_str().unwrap(), "q", "--", "true"]);
    eventually(LONG, || path.exists());
    drop(worker);
    let nowhere = folder.path().join("none/w.prom");
    let told = place.finish(&["work", "--metrics-file", nowhere.to_str().unwrap(), "q", "--", "true"]);
    assert!(told.failed(7).contains("w.prom"), "{told:?}");
}
