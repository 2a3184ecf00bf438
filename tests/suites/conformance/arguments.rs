//! Bad arguments are refused, the same way everywhere, before any I/O.

use std::time::Duration;

use stanchion::{Client, ErrorKind, Fence, LockOptions, ManualClock};
use stanchion_tests::faces::{AnyClient, Face};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::{RedisServer, on_every_store};

use crate::{ms, secs};

fn bad_names() -> Vec<String> {
    let mut names: Vec<String> =
        ["", "\0", "a\nb", "{", "}", "{}", "a}{b", "{a}{b}", "{{a}}", "a{", "\u{85}"].map(Into::into).into();
    names.push("x".repeat(513));
    names.push("x".repeat(64 * 1024));
    names
}

fn bad_options() -> Vec<LockOptions> {
    let new = LockOptions::new;
    vec![
        new().ttl(Duration::ZERO),
        new().ttl(ms(49)),
        new().ttl(secs(366 * 24 * 3600)),
        new().ttl(Duration::MAX),
        new().wait(Duration::MAX),
        new().renew(true).max_hold(secs(29)),
        new().max_hold(Duration::MAX),
        new().adopt_unexpiring(Duration::MAX),
        new().label("two\nlines"),
        new().label("x".repeat(257)),
    ]
}

fn everything_bad_is_invalid(client: &AnyClient) {
    for name in bad_names() {
        let lock = client.lock(&name);
        let errors = [
            lock.acquire(LockOptions::new()).map(drop).unwrap_err(),
            lock.try_acquire(LockOptions::new()).map(drop).unwrap_err(),
            lock.holder().map(drop).unwrap_err(),
            lock.is_locked().map(drop).unwrap_err(),
            lock.break_lease().map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:.20}: {error}");
            assert!(!error.is_retryable());
            assert!(error.to_string().len() < 500, "a long name is not repeated in full");
        }
    }
    for options in bad_options() {
        let lock = client.lock("a");
        let error = lock.acquire(options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{options:?}");
        assert_eq!(error.name(), Some("a"));
        if !format!("{options:?}").contains("wait: Some") {
            assert_eq!(lock.try_acquire(options).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
}

on_every_store! {
    fn bad_names_and_options_are_invalid_arguments(bench) {
        let client = bench.client();
        everything_bad_is_invalid(&client);
        assert_eq!(client.all_locks(), Vec::<String>::new(), "nothing was locked");
    }

    fn the_limits_themselves_are_allowed(bench) {
        let client = bench.client();
        let name = "x".repeat(512);
        let lease = client.lock(&name).acquire(LockOptions::new().ttl(ms(50)).label("y".repeat(256))).unwrap();
        assert!(lease.fence() > Fence::NONE);
        let lease = client.lock("b").acquire(LockOptions::new().ttl(stanchion::MAX_TTL)).unwrap();
        assert!(lease.remaining() > secs(300 * 24 * 3600));
        lease.release().unwrap();
    }

    fn bad_client_options_are_invalid_arguments(bench) {
        let builders = [
            bench.builder().lock_prefix("a{b}"),
            bench.builder().lock_prefix("a\n"),
            bench.builder().lock_prefix("x".repeat(129)),
            bench.builder().lock_prefix("same").queue_prefix("same"),
            bench.builder().timeout(Duration::ZERO),
            bench.builder().label("x".repeat(257)),
        ];
        for builder in builders {
            assert_eq!(AnyClient::open(bench.face, builder).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let url = format!("{}?nonsense=1", bench.url());
        let error = AnyClient::open(bench.face, Client::builder(&url)).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidArgument, Some("open")));
    }

    fn a_handle_must_be_a_handle(bench) {
        for text in ["", "{}", "null", "[]", "{\"stanchion\":1}"] {
            let error = text.parse::<stanchion::LeaseHandle>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        }
        assert!(bench.client().release_all().is_ok());
    }
}

/// With the server gone, only what is checked before any I/O can be an `InvalidArgument`.
fn refused_without_a_server(face: Face) {
    let server = RedisServer::start();
    let builder = Client::builder(&server.url()).timeout(ms(50));
    let client = AnyClient::open(face, builder).unwrap();
    server.kill9();
    everything_bad_is_invalid(&client);
    let error = client.lock("a").holder().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "the server is really gone");
}

#[test]
fn bad_arguments_are_refused_without_a_server_async() {
    refused_without_a_server(Face::Async);
}

#[test]
fn bad_arguments_are_refused_without_a_server_blocking() {
    refused_without_a_server(Face::Blocking);
}

#[test]
fn bad_urls_are_invalid_arguments_and_never_repeated() {
    for face in [Face::Async, Face::Blocking] {
        for url in [
            "",
            "nonsense",
            "http://u:c4n4ry-pa55w0rd@h/",
            "redis://",
            "sqlite:",
            "redis://u:c4n4ry-pa55w0rd@h/notadb",
        ] {
            let error = AnyClient::open(face, Client::builder(url)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}");
            assert!(!format!("{error} {error:?}").contains("c4n4ry-pa55w0rd"));
        }
    }
}

#[test]
fn without_a_url_and_a_variable_nothing_is_opened() {
    assert!(std::env::var_os(stanchion::URL_VARIABLE).is_none(), "run the tests without STANCHION_URL");
    let error = AnyClient::open(Face::Blocking, Client::from_env()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("STANCHION_URL"), "it says what to do: {error}");
}

#[test]
fn a_manual_clock_is_for_memory_only() {
    for kind in [Kind::Sqlite, Kind::Redis] {
        let bench = Bench::new(kind, Face::Blocking);
        let builder = bench.builder().clock(&ManualClock::new());
        assert_eq!(AnyClient::open(bench.face, builder).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn a_store_that_is_not_there_is_unavailable_within_the_timeout() {
    let server = RedisServer::start();
    let url = server.url();
    drop(server);
    for face in [Face::Async, Face::Blocking] {
        let (result, took) = crate::timed(|| AnyClient::open(face, Client::builder(&url).timeout(ms(200))));
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.is_retryable());
        assert!(took.less_than(secs(2)), "took {took:?}");
    }
}
