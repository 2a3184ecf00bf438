//! What a task says of its runs, `stanchion queues cancel` and `result`.

use serde_json::Value;
use stanchion::blocking::Client;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, is_gone, on_both_stores};

on_both_stores! {
    fn what_a_task_says_of_its_runs_is_shown_and_told_to_the_command(place) {
        let options = ["--kind", "send-welcome", "--run-timeout", "20", "--backoff", "0,30", "--keep-result", "60"];
        place.finish(&[&["enqueue", "q", "a"], &options[..]].concat()).succeeded();
        let task = place.task("a");
        assert_eq!((&task["kind"], &task["timeout_ms"]), (&"send-welcome".into(), &20_000.into()));
        assert_eq!(task["backoff"], serde_json::json!([0, 30_000]));
        let script = "[ $STANCHION_ATTEMPT = 2 ] && { echo $STANCHION_KIND > done; exit; }; echo broken >&2; exit 5";
        place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", script]);
        assert_eq!(place.line("done"), "send-welcome");
        place.finish(&["enqueue", "q", "b", "--max-attempts", "1"]).succeeded();
        place.finish(&["work", "q", "-q", "--until-empty", "--", "sh", "-c", "echo broken >&2; exit 5"]);
        let shown = place.finish(&["queues", "get", "q", "b"]);
        assert!(shown.succeeded().contains("FAILED:") && shown.out.contains("broken"), "{shown:?}");
        for bad in [["--kind", ""], ["--run-timeout", "0"], ["--backoff", "soon"], ["--backoff", "[-1]"]] {
            let refused = place.finish(&[&["enqueue", "q", "c"], &bad[..]].concat());
            assert_eq!(refused.code, 2, "{bad:?}: {refused:?}");
        }
    }

    fn a_command_that_takes_too_long_is_stopped_and_its_attempt_has_failed(place) {
        place.finish(&["enqueue", "q", "own", "--max-attempts", "1", "--run-timeout", "0.3"]).succeeded();
        place.finish(&["enqueue", "q", "other", "--max-attempts", "1"]).succeeded();
        let script = "echo $$ > {}.pid; exec sleep 600";
        let limits = ["--run-timeout", "0.4", "--kill-after", "0"];
        let work = [&["work", "q", "-q", "--until-empty"], &limits[..], &["--", "sh", "-c", script]].concat();
        place.finish(&work).succeeded();
        for id in ["own", "other"] {
            assert!(is_gone(place.pid(&format!("{id}.pid"))), "{id}");
            let task = place.task(id);
            let (state, reason, failures) = (&task["state"], &task["reason"], &task["failures"]);
            assert_eq!((state, reason), (&"dead".into(), &"timeout".into()), "{task}");
            assert_eq!(failures[0]["reason"], "timeout", "{task}");
        }
        for bad in ["0", "-1", "soon", "31536001"] {
            let refused = place.finish(&["work", "q", "--until-empty", "--run-timeout", bad, "--", "true"]);
            assert!(refused.failed(2).contains("--run-timeout"), "{bad}: {refused:?}");
        }
    }

    fn progress_is_shown_also_if_it_is_no_text(place) {
        place.finish(&["enqueue", "q", "a"]).succeeded();
        let queue = Client::open(place.url()).unwrap().queue("q");
        let claim = queue.claim(stanchion::ClaimOptions::new()).unwrap().remove(0);
        assert_eq!(place.task("a")["progress"], Value::Null);
        claim.progress(b"half").unwrap();
        assert!(place.finish(&["queues", "get", "q", "a"]).succeeded().contains("half"));
        assert_eq!(place.task("a")["progress"], "half");
        claim.progress(b"\x00\xff").unwrap();
        let task = place.task("a");
        assert_eq!((&task["progress"], &task["progress_base64"]), (&Value::Null, &"AP8=".into()), "{task}");
        claim.ack_with(b"\xff").unwrap();
        let result = place.json(&["queues", "result", "q", "a"]).remove(0);
        assert_eq!((&result["result"], &result["result_base64"]), (&Value::Null, &"/w==".into()), "{result}");
    }

    fn a_cancelled_task_is_gone_or_its_command_is_stopped(place) {
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        let worker = place.start(&["work", "q", "-q", "--lease", "1", "--", "sh", "-c", "echo {} >> started; exec sleep 600"]);
        place.line("started");
        let cancelled = place.finish(&["queues", "cancel", "q", "b"]);
        assert_eq!(cancelled.succeeded(), "b removed: it was not worked on\n");
        assert_eq!(place.json(&["queues", "cancel", "q", "a"]).remove(0)["outcome"], "running");
        eventually(LONG, || place.finish(&["queues", "get", "q", "a"]).code == 9);
        assert_eq!(place.finish(&["queues", "cancel", "q", "a"]).code, 9);
        assert_eq!(place.stats()["dead"], 0);
        drop(worker);
    }

    fn the_result_of_a_task_is_printed(place) {
        place.finish(&["enqueue", "q", "a", "b"]).succeeded();
        let pending = place.finish(&["queues", "result", "q", "a"]);
        assert_eq!((pending.code, &*pending.out), (1, ""), "{pending:?}");
        let queue = Client::open(place.url()).unwrap().queue("q");
        let claim = queue.claim(stanchion::ClaimOptions::new()).unwrap().remove(0);
        claim.ack_with(b"42\n").unwrap();
        assert_eq!(place.finish(&["queues", "result", "q", "a", "--wait", "20"]).succeeded(), "42\n");
        assert_eq!(place.json(&["queues", "result", "q", "a"]).remove(0)["result"], "42\n");
        let claim = queue.claim(stanchion::ClaimOptions::new()).unwrap().remove(0);
        claim.bury("hopeless").unwrap();
        let dead = place.finish(&["queues", "result", "q", "b"]);
        assert!(dead.code == 9 && dead.err.contains("hopeless"), "{dead:?}");
        assert_eq!(place.finish(&["queues", "result", "q", "unknown"]).code, 9);
    }
}
