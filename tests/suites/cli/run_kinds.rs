//! `stanchion run` under other locks than one exclusive one, and the recipe for cron.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::harness::{Place, Running, on_both_stores};

const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.01; done";
const README: &str = include_str!("../../../README.md");

on_both_stores! {
    fn readers_come_together_and_a_writer_alone(place) {
        let reader = place.hold(&["--read"], UNTIL_GO);
        place.finish(&["run", "-n", "--shared", "a", "--", "true"]).succeeded();
        place.finish(&["run", "-n", "--write", "a", "--", "touch", "ran"]).failed(1);
        place.finish(&["run", "-n", "--exclusive", "a", "--", "touch", "ran"]).failed(1);
        // The exclusive lock of that name is another one.
        place.finish(&["run", "-n", "a", "--", "true"]).succeeded();
        place.touch("go");
        reader.finish().succeeded();
        fs::remove_file(place.path("started")).unwrap();
        fs::remove_file(place.path("go")).unwrap();
        let writer = place.hold(&["--write"], UNTIL_GO);
        place.finish(&["run", "-n", "--read", "a", "--", "touch", "ran"]).failed(1);
        place.touch("go");
        writer.finish().succeeded();
        assert!(!place.path("ran").exists());
    }

    fn so_many_commands_run_as_there_are_permits(place) {
        let holder = place.hold(&["--permits", "3", "--weight", "2"], UNTIL_GO);
        let run = |options: &[&str]| place.finish(&[&["run", "-n"], options, &["a", "--", "true"]].concat());
        run(&["--permits", "3"]).succeeded();
        run(&["--permits", "3", "--weight", "2"]).failed(1);
        assert!(run(&["--permits", "4"]).failed(2).contains("3 permits"));
        place.touch("go");
        holder.finish().succeeded();
        run(&["--permits", "3", "--weight", "3"]).succeeded();
        run(&["--permits", "0"]).failed(2);
        run(&["--permits", "3", "--weight", "4"]).failed(2);
    }

    fn several_locks_are_held_together_or_none(place) {
        let script = format!("echo \"$STANCHION_LOCK\"; echo \"$STANCHION_FENCE\"; {UNTIL_GO}");
        let holder = place.hold(&["b"], &script);
        for name in ["a", "b"] {
            place.finish(&["run", "-n", name, "--", "touch", "ran"]).failed(1);
        }
        // One of these is busy, so the other one is not taken either.
        assert!(place.finish(&["run", "-n", "c", "b", "--", "touch", "ran"]).failed(1).contains("\"b\""));
        place.finish(&["run", "-n", "c", "--", "true"]).succeeded();
        place.touch("go");
        let outcome = holder.finish();
        let lines: Vec<&str> = outcome.succeeded().lines().collect();
        let [first, second, fences @ ..] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((*first, *second, fences.len()), ("a", "b", 2));
        assert!(fences.iter().all(|fence| fence.parse::<u64>().unwrap() > 0), "{fences:?}");
        place.finish(&["run", "--cooldown", "300", "a", "b", "--", "true"]).succeeded();
        for name in ["a", "b"] {
            place.finish(&["run", "-n", name, "--", "touch", "ran"]).failed(1);
        }
        assert!(!place.path("ran").exists());
    }

    fn the_recipe_for_cron_runs_once(place) {
        let recipe = README.lines().find_map(|line| line.strip_prefix("stanchion run -n -q --cooldown "));
        let words: Vec<&str> = recipe.unwrap().split_whitespace().collect();
        fs::write(place.path("report.sh"), "#!/bin/sh\necho ran >> runs\n").unwrap();
        fs::set_permissions(place.path("report.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let args = [&["run", "-n", "-q", "--cooldown"], &words[..]].concat();
        // At the same time, and again when the first is done.
        let two = [place.start(&args), place.start(&args)].map(Running::finish);
        let later = place.finish(&args);
        let mut codes = two.map(|outcome| (outcome.code, outcome.err));
        codes.sort();
        assert_eq!(codes, [(0, String::new()), (1, String::new())]);
        assert_eq!((later.code, &*later.err), (1, ""));
        assert_eq!(fs::read_to_string(place.path("runs")).unwrap(), "ran\n");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let place = Place::new();
    for (options, word) in [
        (&["--read", "--write", "a"][..], "--write"),
        (&["--read", "--permits", "2", "a"], "--permits"),
        (&["--weight", "2", "a"], "--permits"),
        (&["--read", "a", "b"], "one NAME"),
        (&["--permits", "2", "a", "b"], "one NAME"),
        (&["--cooldown", "9", "--read", "a"], "cannot be used with"),
        (&["--cooldown", "9", "--permits", "2", "a"], "cannot be used with"),
    ] {
        let outcome = place.finish(&[&["run"], options, &["--", "touch", "ran"]].concat());
        assert!(outcome.failed(2).contains(word), "{outcome:?}");
    }
    assert!(!place.path("ran").exists());
}
