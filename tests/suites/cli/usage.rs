//! Arguments, errors, and what is printed about them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use super::harness::{Place, Running};

#[test]
fn wrong_usage_is_one_line_and_code_2() {
    let place = Place::new();
    let rows: [(&[&str], &str); 12] = [
        (&[], "subcommand"),
        (&["nonsense"], "nonsense"),
        (&["locks"], "subcommand"),
        (&["run", "a"], "<CMD>"),
        (&["run", "--", "true"], "<NAME>"),
        (&["run", "a", "true"], "write -- before the command"),
        (&["run", "-n", "-w", "1", "a", "--", "true"], "--wait"),
        (&["run", "-E", "256", "a", "--", "true"], "256"),
        (&["run", "--cooldown", "0", "a", "--", "true"], "--cooldown"),
        (&["run", "--label", "x\ny", "a", "--", "true"], "label"),
        (&["--timeout", "0", "locks", "ls"], "timeout"),
        (&["completions", "tcsh"], "tcsh"),
    ];
    for (args, word) in rows {
        assert!(place.finish(args).failed(2).contains(word), "{args:?}");
    }
}

#[test]
fn bad_times_are_refused_before_any_io() {
    let place = Place::with_url(&format!("redis://127.0.0.1:{}/", closed_port()));
    for ttl in ["0", "-1", "NaN", "inf", "18446744073709551616", "0.049", "31536001", "10s", "True", ""] {
        assert!(place.finish(&["run", "--ttl", ttl, "a", "--", "true"]).failed(2).contains("--ttl"), "{ttl}");
    }
    for wait in ["-1", "NaN", "inf", "infinite", "18446744073709551616"] {
        assert!(place.finish(&["run", "-w", wait, "a", "--", "true"]).failed(2).contains("--wait"), "{wait}");
    }
}

#[test]
fn bad_names_are_refused() {
    let place = Place::new();
    let long = "x".repeat(64 * 1024);
    for name in ["", "a\nb", "{", "{a}{b}", &long] {
        let outcome = place.finish(&["run", name, "--", "touch", "ran"]);
        assert!(outcome.failed(2).len() < 400, "{outcome:?}");
        place.finish(&["locks", "show", name]).failed(2);
        place.finish(&["locks", "break", name]).failed(2);
    }
    let name: OsString = OsStr::from_bytes(b"\xff").to_owned();
    let args = ["run".into(), name, "--".into(), "touch".into(), "ran".into()];
    assert!(place.finish(&args).failed(2).contains("UTF-8"));
    assert!(!place.path("ran").exists());
}

#[test]
fn a_url_is_never_repeated_with_its_password() {
    let place = Place::new();
    let port = closed_port();
    let rows = [
        ("redis://me:c4n4ry-pa55w0rd@h:99999/".to_owned(), 2),
        ("rediss://me:c4n4ry-pa55w0rd@h/#insecure".to_owned(), 2),
        ("http://me:c4n4ry-pa55w0rd@h/".to_owned(), 2),
        (format!("redis://me:c4n4ry-pa55w0rd@127.0.0.1:{port}/"), 4),
    ];
    for (url, code) in rows {
        let mut by_variable = place.stanchion(&["locks", "ls"]);
        by_variable.env("STANCHION_URL", &url);
        for outcome in [Running::start(by_variable).finish(), place.finish(&["--url", &url, "locks", "ls"])] {
            assert!(!outcome.failed(code).contains("c4n4ry-pa55w0rd"), "{outcome:?}");
        }
        // In the wrong place, too.
        assert!(!place.finish(&[&url]).failed(2).contains("c4n4ry-pa55w0rd"));
        let mut help = place.stanchion(&["--help"]);
        help.env("STANCHION_URL", &url);
        assert!(!Running::start(help).finish().succeeded().contains("c4n4ry-pa55w0rd"));
    }
}

#[test]
fn an_unreachable_store_has_its_code() {
    let place = Place::with_url(&format!("redis://127.0.0.1:{}/", closed_port()));
    for args in [&["run", "a", "--", "touch", "ran"][..], &["locks", "ls"], &["locks", "break", "a"]] {
        assert!(place.finish(args).failed(4).contains("127.0.0.1"));
    }
    let json = place.finish(&["locks", "ls", "--json"]);
    let error: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &error["error"], &error["code"]), (4, &"StoreUnavailable".into(), &4.into()));
    assert!(!place.path("ran").exists());
}

#[test]
fn errors_of_usage_are_json_too() {
    let place = Place::new();
    let outcome = place.finish(&["--json", "run", "a"]);
    let error: Value = serde_json::from_str(&outcome.err).unwrap();
    assert_eq!((outcome.code, &error["error"], &error["code"]), (2, &"InvalidArgument".into(), &2.into()));
    // What belongs to the command is not ours.
    place.finish(&["run", "--ttl", "x", "a", "--", "true", "--json"]).failed(2);
}

#[test]
fn without_a_url_the_users_own_store_is_used_and_named() {
    let place = Place::new();
    let state = place.path("state");
    let run = |args: &[&str]| {
        let mut command = place.stanchion(args);
        command.env_remove("STANCHION_URL").env("XDG_STATE_HOME", &state);
        Running::start(command).finish()
    };
    let outcome = run(&["run", "--cooldown", "300", "a", "--", "true"]);
    let file = state.join("stanchion/stanchion.db");
    assert!(outcome.failed(0).contains(file.to_str().unwrap()), "{outcome:?}");
    assert!(file.exists());
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(run(&["-q", "locks", "show", "a", "--json"]).succeeded().matches("cooldown").count(), 1);
    let noted: Value = serde_json::from_str(&run(&["--json", "locks", "ls"]).err).unwrap();
    assert!(noted["note"].as_str().unwrap().contains("stanchion.db"), "{noted}");
}

/// A lock there keeps nobody out.
#[test]
fn a_store_of_this_process_alone_is_called_so() {
    let outcome = Place::with_url("memory:").finish(&["run", "a", "--", "true"]);
    assert!(outcome.failed(0).contains("this process alone"), "{outcome:?}");
}

#[test]
fn a_required_url_is_not_replaced_by_the_users_own_store() {
    let place = Place::new();
    let run = |args: &[&str], required: &str, url: &str| {
        let mut command = place.stanchion(args);
        command.env("STANCHION_URL", url).env("STANCHION_REQUIRE_URL", required);
        command.env("XDG_STATE_HOME", place.path("state")).args(["locks", "ls"]);
        Running::start(command).finish()
    };
    for (args, required) in [(&["--require-url"][..], ""), (&[], "1"), (&[], "yes")] {
        assert!(run(args, required, "").failed(2).contains("STANCHION_REQUIRE_URL"), "{required}");
        assert!(
            run(&[args, &["--url="]].concat(), required, place.url()).failed(2).contains("--require-url")
        );
        run(args, required, place.url()).succeeded();
    }
    assert!(!place.path("state").exists());
    run(&["--url", place.url()], "1", "").succeeded();
    for required in ["", "0", "false"] {
        run(&[], required, "").failed(0);
    }
}

#[test]
fn the_users_own_store_defaults_to_the_home_directory() {
    let place = Place::new();
    let mut command = place.stanchion(&["run", "a", "--", "true"]);
    // As if it were not set; a relative state directory is ignored.
    command.env("STANCHION_URL", "").env("XDG_STATE_HOME", "relative").env("HOME", place.path("home 50%?"));
    Running::start(command).finish().failed(0);
    assert!(place.path("home 50%?/.local/state/stanchion/stanchion.db").exists());
    let mut command = place.stanchion(&["locks", "ls"]);
    command.env_remove("STANCHION_URL").env_remove("HOME");
    Running::start(command).finish().failed(2);
}

#[test]
fn completions_and_the_manual_page_are_printed() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = place.finish(&["completions", shell]);
        let script = outcome.succeeded();
        assert!(
            script.contains("stanchion") && script.contains("kill-after") && script.contains("on-duplicate"),
            "{shell}"
        );
    }
    let page = place.finish(&["man"]);
    for word in [
        ".TH stanchion 1",
        "STANCHION RUN",
        "STANCHION ENQUEUE",
        "STANCHION QUEUES LS",
        "EXIT STATUS",
        "STANCHION_FENCE",
    ] {
        assert!(page.succeeded().contains(word), "{word}");
    }
    let help = place.finish(&["run", "--help"]);
    for word in ["Exit codes:", "[default: 10]", "365 days", "STANCHION_FENCE"] {
        assert!(help.succeeded().contains(word), "{word}");
    }
    assert!(place.finish(&["--version"]).succeeded().starts_with("stanchion "));
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let place = Place::new();
    for args in [&["locks", "ls"][..], &["man"], &["completions", "zsh"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.stanchion(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let place = Place::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.stanchion(&["locks", "ls"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("stanchion: writing the output failed"));
}

/// A port on which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
