//! `stanchion doctor`.

use serde_json::Value;
use stanchion_tests::redis_server::RedisServer;

use super::harness::Place;

fn healths(place: &Place, code: i32) -> Vec<(String, String)> {
    let outcome = place.finish(&["doctor", "--json"]);
    assert_eq!(outcome.code, code, "{outcome:?}");
    let Value::Array(findings) = serde_json::from_str(&outcome.out).unwrap() else { panic!("{outcome:?}") };
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    for finding in &findings {
        assert!(!text(finding, "promise").is_empty() && !text(finding, "found").is_empty());
        assert_eq!(finding["advice"].is_null(), finding["health"] == "good", "{finding}");
    }
    findings.iter().map(|finding| (text(finding, "check"), text(finding, "health"))).collect()
}

fn health(place: &Place, code: i32, check: &str) -> String {
    healths(place, code).into_iter().find(|(name, _)| name == check).unwrap().1
}

fn set(server: &RedisServer, name: &str, value: &str) {
    redis::cmd("CONFIG").arg("SET").arg(name).arg(value).exec(&mut server.raw()).unwrap();
}

#[test]
fn a_file_is_well() {
    let place = Place::new();
    let all = healths(&place, 0);
    assert!(all.iter().all(|(_, health)| health == "good"), "{all:?}");
    for check in ["place", "persistence", "content", "space", "locks", "queues", "hints"] {
        assert!(all.iter().any(|(name, _)| name == check), "{check}");
    }
}

#[test]
fn a_server_that_keeps_nothing_is_bad_for_tasks() {
    let server = RedisServer::builder().arg("--save", "").start();
    let place = Place::with_url(&server.url());
    assert_eq!(health(&place, 5, "persistence"), "bad");
    let told = place.finish(&["doctor"]);
    assert!(told.out.contains("appendonly yes"), "{told:?}");
}

#[test]
fn a_server_that_syncs_every_write_is_good_until_it_evicts() {
    let server = RedisServer::builder().appendonly().start();
    let place = Place::with_url(&server.url());
    let all = healths(&place, 0);
    assert!(all.iter().all(|(_, health)| health == "good"), "{all:?}");
    set(&server, "maxmemory", "50mb");
    assert_eq!(health(&place, 0, "memory"), "good");
    set(&server, "maxmemory-policy", "allkeys-lru");
    assert_eq!(health(&place, 5, "memory"), "bad");
}

#[test]
fn a_user_without_rights_is_told_the_rule() {
    let rule = "on >c4n4ry-pa55w0rd ~Queue:* +info +time +ping +hello";
    let server = RedisServer::builder().appendonly().user("app", rule).start();
    let place = Place::with_url(&server.url_as("app", "c4n4ry-pa55w0rd"));
    assert_eq!(health(&place, 5, "locks"), "bad");
    let told = place.finish(&["doctor"]);
    assert!(told.out.contains("+evalsha") && !told.out.contains("c4n4ry"), "{told:?}");
}

#[test]
fn no_server_is_an_error() {
    let place = Place::with_url("redis://127.0.0.1:1");
    assert_eq!(place.finish(&["doctor", "--timeout", "1"]).code, 4);
}

#[test]
fn a_server_that_is_twice_in_a_quorum_is_named_twice() {
    let server = RedisServer::start();
    let port = server.port();
    let url = format!("redis-quorum://127.0.0.1:{port},localhost:{port},127.0.0.1:1/?rejoin_after=0");
    let told = Place::with_url(&url).finish(&["doctor"]);
    assert!(told.code != 0, "{told:?}");
    assert!(
        told.err.contains(&format!("127.0.0.1:{port}")) && told.err.contains(&format!("localhost:{port}")),
        "{told:?}"
    );
}
