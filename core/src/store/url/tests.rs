//! URLs that are read, and URLs that are refused.

use super::*;
use crate::base::error::ErrorKind;

fn redis(text: &str) -> RedisAddress {
    match StoreUrl::parse(text).unwrap().address {
        Address::Redis(address) => *address,
        Address::Sqlite(_) => panic!("not redis"),
    }
}

#[test]
fn redis_urls_carry_credentials_and_database() {
    let address = redis("redis://me:s%40crt@example.org:7000/3");
    assert_eq!(address.username.as_deref(), Some("me"));
    assert_eq!(address.password.as_deref(), Some("s@crt"));
    assert_eq!(address.db, 3);
    let place = |text| match redis(text).place {
        RedisPlace::Tcp { server, tls } => (server.to_string(), tls),
        _ => panic!("not TCP"),
    };
    assert_eq!(place("redis://me:s%40crt@example.org:7000/3"), ("example.org:7000".into(), false));
    assert_eq!(place("rediss://h"), ("h:6379".into(), true));
    assert_eq!(place("redis://[::1]"), ("[::1]:6379".into(), false));
}

#[test]
fn sentinels_are_listed_before_their_master() {
    let address = redis("rediss-sentinel://me:a,%40b@s1,s2:7000,[::1]/my%20master/3?sentinel_pass=x");
    assert_eq!((address.username.as_deref(), address.password.as_deref()), (Some("me"), Some("a,@b")));
    assert_eq!(address.db, 3);
    let RedisPlace::Sentinel(place) = address.place else { panic!("no Sentinels") };
    let sentinels: Vec<_> = place.sentinels.iter().map(ToString::to_string).collect();
    assert_eq!(sentinels, ["s1:26379", "s2:7000", "[::1]:26379"]);
    assert_eq!((&*place.master, place.password.as_deref(), place.tls), ("my master", Some("x"), true));
    let RedisPlace::Sentinel(place) = redis("redis-sentinel://s/m").place else { panic!("no Sentinels") };
    assert!(!place.tls && place.username.is_none() && place.password.is_none());
}

#[test]
fn a_cluster_has_seeds() {
    let address = redis("redis-cluster://:pw@a:7000,b/0");
    assert_eq!(address.password.as_deref(), Some("pw"));
    let RedisPlace::Cluster { seeds, tls: false } = address.place else { panic!("no cluster") };
    let seeds: Vec<_> = seeds.iter().map(ToString::to_string).collect();
    assert_eq!(seeds, ["a:7000", "b:6379"]);
    assert!(redis("rediss-cluster://h").place.is_encrypted());
}

#[test]
fn unix_sockets_take_credentials_from_the_query() {
    let address = redis("redis+unix:///run/redis.sock?db=2&user=u&pass=p");
    assert!(matches!(address.place, RedisPlace::Unix(path) if path.ends_with("redis.sock")));
    assert_eq!((address.db, address.password.as_deref()), (2, Some("p")));
}

#[test]
fn options_come_from_the_query() {
    let url = StoreUrl::parse(
        "redis://h/?lock_prefix=app:&queue_prefix=&timeout=2.5&foreign_share=1&clock_margin=90",
    )
    .unwrap();
    assert_eq!(url.lock_prefix.as_deref(), Some("app:"));
    assert_eq!(url.queue_prefix.as_deref(), Some(""));
    assert_eq!(url.timeout, Some(Duration::from_millis(2_500)));
    assert_eq!(url.foreign_share, Some(true));
    assert_eq!(url.clock_margin, Some(Duration::from_secs(90)));
    assert!(StoreUrl::parse("memory:?clock_margin=2592001").is_err());
    assert!(StoreUrl::parse("memory:?clock_margin=-1").is_err());
}

#[test]
fn files_and_memory() {
    let target = |text| match StoreUrl::parse(text).unwrap().address {
        Address::Sqlite(target) => target,
        Address::Redis(_) => panic!("not sqlite"),
    };
    assert!(
        matches!(target("sqlite:/a/b.db"), SqliteTarget::File { path, mode: 0o600, secure_delete: false } if path.ends_with("b.db"))
    );
    assert!(matches!(target("sqlite:b.db?mode=660"), SqliteTarget::File { mode: 0o660, .. }));
    assert!(matches!(target("memory:"), SqliteTarget::Memory { name: None }));
    assert!(matches!(target("memory:x"), SqliteTarget::Memory { name: Some(name) } if name == "x"));
}

#[test]
fn bad_urls_are_invalid_and_never_repeated() {
    for text in [
        "",
        "x",
        "http://h",
        "redis://",
        "redis://h/x",
        "redis://h?nope=1",
        "rediss://u:c4n4ry-pa55w0rd@h/#insecure",
        "redis://u:c4n4ry-pa55w0rd@h:99999",
        "sqlite:",
        "sqlite:a?mode=9",
        "sqlite:a?secure_delete=yes",
        "memory:?secure_delete=true",
        "sqlite::memory:",
        "redis://h?timeout=-1",
        "redis+unix://h/x",
        "redis://h/?tls_ca=x",
        "redis://u:1?c4n4ry-pa55w0rd@h",
        "redis://u:1?canary=c4n4ry-pa55w0rd@h",
        "c4n4ry-pa55w0rd",
        "c4n4ry-pa55w0rd@h",
        "c4n4ry-pa55w0rd:x@h",
        "redis-sentinel://h",
        "redis-sentinel:h/m",
        "redis-sentinel:///m",
        "redis-sentinel://h,/m",
        "redis-sentinel://h/m/x",
        "redis-sentinel://h/m/0/1",
        "redis-sentinel://u:c4n4ry-pa55w0rd@h:99999/m",
        "redis-sentinel://u:c4n4ry-pa55w0rd/x@h/m",
        "redis-sentinel://h/m?tls_ca=x",
        "redis-cluster://",
        "redis-cluster://h/1",
        "redis-cluster://h,u:c4n4ry-pa55w0rd@h,h:x",
        "redis-cluster://h?sentinel_pass=c4n4ry-pa55w0rd",
    ] {
        let error = StoreUrl::parse(text).err().unwrap_or_else(|| panic!("{text} parsed"));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        assert!(!error.to_string().contains("c4n4ry-pa55w0rd"), "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}

#[test]
fn an_unknown_parameter_is_answered_with_those_that_there_are() {
    for (text, has, lacks) in [
        ("redis://h?nope=1", vec!["\"nope\"", "min_replicas", "timeout, lock_prefix"], vec!["tls_ca", "db"]),
        ("rediss://h?nope=1", vec!["tls_ca, tls_cert, tls_key"], vec!["sentinel_user"]),
        ("redis+unix:///s?nope=1", vec!["db, user, pass"], vec!["tls_ca"]),
        ("redis-sentinel://h/m?nope=1", vec!["sentinel_user, sentinel_pass"], vec!["node_timeout"]),
        ("redis-quorum://a,b,c?min_replicas=1", vec!["node_timeout, rejoin_after"], vec!["replica_timeout"]),
        ("sqlite:a?nope=1", vec!["mode, secure_delete", "clock_margin"], vec!["min_replicas"]),
        ("memory:?mode=600", vec!["it takes timeout"], vec!["secure_delete"]),
        ("redis://u:1?canary=x@h", vec!["it takes", "%3F"], vec!["canary"]),
    ] {
        let message = StoreUrl::parse(text).err().unwrap().to_string();
        assert!(has.iter().all(|word| message.contains(word)), "{text}: {message}");
        assert!(!lacks.iter().any(|word| message.contains(word)), "{text}: {message}");
    }
}

#[test]
fn a_quorum_has_servers_that_vote_once_each() {
    let address = redis("rediss-quorum://me:pw@a,b:7000,[::1]/2?node_timeout=0.1&rejoin_after=5");
    assert_eq!((address.username.as_deref(), address.db), (Some("me"), 2));
    let RedisPlace::Quorum(place) = address.place else { panic!("no quorum") };
    let servers: Vec<_> = place.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["a:6379", "b:7000", "[::1]:6379"]);
    assert!(place.tls && place.node_timeout == Duration::from_millis(100));
    assert_eq!(place.rejoin_after, Duration::from_secs(5));
    let usual = |text| match redis(text).place {
        RedisPlace::Quorum(place) => {
            (place.node_timeout.as_millis(), place.rejoin_after.as_secs(), place.tls)
        }
        _ => panic!("no quorum"),
    };
    assert_eq!(usual("valkey-quorum://a,b,c"), (250, 60, false));
    assert_eq!(
        usual("redis-quorum://a,b,c/?node_timeout=0.5&rejoin_after=31536000"),
        (500, 31_536_000, false)
    );
    assert_eq!(usual("redis-quorum://a,b,c/?node_timeout=0.001&rejoin_after=0"), (1, 0, false));
    for url in [
        "redis-quorum://a",
        "redis-quorum://a,b",
        "redis-quorum://a,b,a:6379",
        "redis-quorum://a,b,c,d,e,f,g,h,i,j",
        "redis-quorum://a,b,c/?node_timeout=0",
        "redis-quorum://a,b,c/?node_timeout=0.501",
        "redis-quorum://a,b,c/?node_timeout=1e19",
        "redis-quorum://a,b,c/?rejoin_after=-1",
        "redis-quorum://a,b,c/?rejoin_after=31536001",
        "redis-quorum://a,b,c/?rejoin_after=1e19",
        "redis://a/?rejoin_after=1",
    ] {
        let refused = StoreUrl::parse(url).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::InvalidArgument), "{url}");
    }
}

#[test]
fn replicas_confirm_leases_if_the_url_says_so() {
    let confirm = |text| redis(text).confirm.map(|it| (it.replicas, it.within.as_millis()));
    assert_eq!(confirm("redis://a"), None);
    assert_eq!(confirm("redis://a/?min_replicas=0"), None);
    assert_eq!(confirm("rediss-sentinel://a/m?min_replicas=1"), Some((1, 100)));
    assert_eq!(confirm("redis+unix:///a?min_replicas=2&replica_timeout=0.25"), Some((2, 250)));
    assert_eq!(confirm("redis-cluster://a?min_replicas=1"), Some((1, 100)));
    for query in
        ["min_replicas=-1", "min_replicas=x", "replica_timeout=1", "min_replicas=1&replica_timeout=0.9"]
    {
        let refused = StoreUrl::parse(&format!("redis://a/?{query}")).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::InvalidArgument), "{query}");
    }
    assert!(StoreUrl::parse("redis-quorum://a,b,c/?min_replicas=1").is_err());
}
