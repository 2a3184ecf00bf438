//! What errors of stores, files and printing say: what it is, and what to do.

use std::fs::OpenOptions;
use std::process::Stdio;

use stanchion_tests::RedisServer;

use super::harness::{Place, Running};

/// Checks what `locks ls` says on a store.
fn refused(url: &str, code: i32, words: &[&str]) {
    let outcome = Place::with_url(url).finish(&["--timeout", "2", "locks", "ls"]);
    let line = outcome.failed(code);
    assert!(words.iter().all(|word| line.contains(word)), "{url}: {line}");
    assert!(!line.contains("check that the store runs"), "{line}");
}

#[test]
fn tls_on_one_side_only_or_not_trusted_is_called_so() {
    let server = RedisServer::builder().tls().start();
    refused(&format!("redis://localhost:{}/", server.tls_port()), 4, &["speaks TLS", "rediss://"]);
    let ca = server.ca_file();
    let plain = format!("rediss://localhost:{}/?tls_ca={}", server.port(), ca.display());
    refused(&plain, 4, &["may not speak TLS", "port"]);
    refused(&server.tls_url(), 4, &["certificate", "not trusted", "tls_ca"]);
    server.config_set("tls-auth-clients", "yes");
    refused(&format!("{}?tls_ca={}", server.tls_url(), ca.display()), 4, &["refused TLS", "tls_cert"]);
}

#[test]
fn a_server_that_is_not_there_is_called_so() {
    let urls =
        ["redis://127.0.0.1:1", "redis://[::1]:1", "rediss://127.0.0.1:1", "redis+unix:///no/such/socket"];
    let several = [
        "redis-cluster://127.0.0.1:1",
        "redis-sentinel://127.0.0.1:1/m",
        "redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
    ];
    for url in urls.into_iter().chain(several) {
        refused(url, 4, &["cannot reach", "is it running"]);
    }
}

#[test]
fn a_database_that_is_not_there_is_named() {
    let server = RedisServer::start();
    refused(&format!("redis://127.0.0.1:{}/1234567", server.port()), 2, &["no database 1234567"]);
}

#[test]
fn a_missing_folder_for_temporary_files_is_named() {
    let place = Place::new();
    place.finish(&["enqueue", "q", "x", "--payload", "text"]).succeeded();
    let folder = place.path("no-such-folder");
    let mut command = place.stanchion(&["-q", "work", "q", "--until-empty", "--", "cat"]);
    command.env("TMPDIR", &folder);
    let outcome = Running::start(command).finish();
    let line = outcome.failed(7);
    assert!(line.contains(folder.to_str().unwrap()) && line.contains("TMPDIR"), "{line}");
    assert_eq!(place.stats()["ready"], 1);
}

#[test]
fn what_was_done_is_told_if_it_cannot_be_printed() {
    let place = Place::new();
    for (args, words) in [
        (&["enqueue", "q", "a"][..], "the tasks were accepted, but printing"),
        (&["queues", "pause", "q"], "it was done, but printing"),
        (&["locks", "break", "a"], "it was done, but printing"),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.stanchion(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(words) && !told.contains("try again"), "{args:?}: {told}");
        assert_eq!(output.status.code(), Some(7));
    }
    assert_eq!((&place.stats()["ready"], &place.stats()["paused"]), (&1.into(), &true.into()));
}
