//! `stanchion limit`: a command when a limit allows it.

use nix::sys::signal::Signal;
use stanchion_tests::wait::eventually;

use super::harness::{LONG, Place, on_both_stores};

const HOURLY: [&str; 3] = ["limit", "--rate", "1/h"];

/// `stanchion limit --rate 1/h`, with more.
fn hourly<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&HOURLY[..], more].concat()
}

/// For how many seconds the limiter is used up.
fn left(place: &Place) -> f64 {
    let outcome = place.finish(&[&["--json"], &hourly(&["-n", "a"])[..]].concat());
    let answer: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!((outcome.code, &answer["allowed"]), (1, &false.into()), "{outcome:?}");
    answer["retry_after"].as_f64().unwrap()
}

on_both_stores! {
    fn a_command_runs_while_the_limit_lasts(place) {
        for kind in ["gcra", "fixed-window", "sliding-window"] {
            // Windows are those of the clock: the next one may begin at any time, but that of a year.
            let rate = if kind == "fixed-window" { "1/31536000" } else { "1/h" };
            let limit = |more: &[&str]| place.finish(&[&["limit", "--rate", rate, "--kind", kind], more].concat());
            limit(&[kind, "--", "touch", kind]).succeeded();
            assert!(place.path(kind).exists());
            let told = limit(&["-n", kind, "--", "touch", "ran"]).failed(1).to_owned();
            assert!(told.contains("used up for") && told.contains("--no-wait"), "{told}");
            assert!(limit(&["-w", "1", kind, "--", "touch", "ran"]).failed(1).contains("--wait"));
            limit(&["-n", "-E", "75", kind, "--", "touch", "ran"]).failed(75);
            assert!(!place.path("ran").exists());
        }
    }

    fn whoever_waits_gets_its_turn(place) {
        for number in ["one", "two", "three"] {
            place.finish(&["limit", "--rate", "4/s", "a", "--", "touch", number]).succeeded();
            assert!(place.path(number).exists());
        }
        place.finish(&["limit", "--rate", "10/s", "--burst", "3", "-c", "3", "b", "--", "true"]).succeeded();
        place.finish(&["limit", "--rate", "10/s", "-c", "3", "b", "--", "touch", "ran"]).failed(2);
    }

    fn a_wait_that_a_signal_ends_gives_its_turn_back(place) {
        place.finish(&hourly(&["a"])).succeeded();
        let before = left(place);
        let waiting = place.start(&hourly(&["-w", "3600", "a", "--", "touch", "ran"]));
        eventually(LONG, || left(place) > before);
        waiting.signal(Signal::SIGINT);
        assert_eq!(waiting.finish().code, 130);
        assert!(left(place) <= before, "its turn was given back");
        assert!(!place.path("ran").exists());
    }

    fn without_a_command_the_exit_code_is_the_answer(place) {
        place.finish(&hourly(&["a"])).succeeded();
        let refused = place.finish(&hourly(&["-n", "-q", "a"]));
        assert_eq!((refused.code, &*refused.out, &*refused.err), (1, "", ""));
        let allowed = place.finish(&[&["--json"], &hourly(&["b"])[..]].concat());
        assert_eq!(allowed.succeeded(), "{\"allowed\":true,\"retry_after\":null}\n");
        let retry = left(place);
        assert!(retry > 0.0 && retry <= 3_600.0, "{retry}");
    }
}

#[test]
fn it_becomes_the_command() {
    let place = Place::new();
    let outcome =
        place.finish(&["limit", "--rate", "1/h", "a", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((outcome.code, &*outcome.out, &*outcome.err), (7, "out\n", "err\n"));
    let killed = place.finish(&["limit", "--rate", "1/h", "b", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.code, -15);
    place.finish(&["limit", "--rate", "1/h", "c", "--", "./not-there"]).failed(127);
}

#[test]
fn what_is_no_limit_is_refused_before_anything_runs() {
    let place = Place::new();
    for (arguments, word) in [
        (&["limit", "a", "--", "touch", "ran"][..], "--rate"),
        (&["limit", "--rate", "10", "a", "--", "touch", "ran"], "10/s"),
        (&["limit", "--rate", "0/s", "a", "--", "touch", "ran"], "limit"),
        (
            &["limit", "--rate", "1/s", "--kind", "fixed-window", "--burst", "2", "a", "--", "touch", "ran"],
            "burst",
        ),
        (&["limit", "--rate", "1/s", "-w", "3601", "a", "--", "touch", "ran"], "1 h"),
        (&["limit", "--rate", "1/s", "-c", "0", "a", "--", "touch", "ran"], "1 to 1"),
        (&["limit", "--rate", "1/s", "{", "--", "touch", "ran"], "name"),
    ] {
        let told = place.finish(arguments).failed(2).to_owned();
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
    assert!(!place.path("ran").exists());
}
