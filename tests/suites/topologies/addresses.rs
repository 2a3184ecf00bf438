//! Addresses that lead nowhere, or to something else: typed errors that say what to do.

use stanchion::{Client, ErrorKind};
use stanchion_tests::cluster::{self, Cluster};
use stanchion_tests::faces::Face;
use stanchion_tests::sentinel::{self, MASTER, Sentinels};
use stanchion_tests::{RedisServer, unique};

use crate::{open, refused, use_it};

on_both_faces! {
    fn nobody_answers(face) {
        let sentinels = "redis-sentinel://user:c4n4ry-pa55w0rd@127.0.0.1:1,127.0.0.1:2/mymaster";
        refused(face, sentinels, ErrorKind::StoreUnavailable, "no Sentinel returned the address of");
        let cluster = "redis-cluster://:c4n4ry-pa55w0rd@127.0.0.1:1,127.0.0.1:2";
        refused(face, cluster, ErrorKind::StoreUnavailable, "no node of the cluster at 127.0.0.1:1, 127.0.0.1:2");
    }

    fn wrong_master_name(face) {
        let url = sentinel::shared().url().replace(MASTER, "another");
        refused(face, &url, ErrorKind::InvalidArgument, "no master \"another\"");
    }

    fn a_server_that_is_something_else(face) {
        let server = format!("127.0.0.1:{}", stanchion_tests::shared().port());
        let unsupported = ErrorKind::Unsupported;
        refused(face, &format!("redis-sentinel://{server}/{MASTER}"), unsupported, "write redis://");
        refused(face, &format!("redis-cluster://{server}"), unsupported, "write redis://");
        let sentinel = format!("redis://{}", sentinel::shared().hosts());
        refused(face, &sentinel, unsupported, "write redis-sentinel://");
        // Each node serves a part: which one a lock belongs to shows when it is used.
        let cluster = cluster::shared();
        let client = open(face, Client::builder(&cluster.nodes[0].url()));
        let elsewhere = (0..).map(|number| format!("n{number}"));
        let mut elsewhere = elsewhere.filter(|name| cluster.owner(cluster.slot(&format!("Lock:{name}"))) != Some(0));
        let error = client.lock(&elsewhere.next().unwrap()).is_locked().unwrap_err();
        assert_eq!(error.kind(), unsupported, "{error}");
        assert!(error.to_string().contains("write redis-cluster://"), "{error}");
    }

    /// One that answers is enough, wherever it stands in the list.
    fn some_of_the_hosts_are_down(face) {
        let sentinels = sentinel::shared();
        let url = sentinels.fresh_db().replace("://", "://127.0.0.1:1,");
        use_it(&open(face, Client::builder(&url)), "a");
        let url = cluster::shared().fresh_prefix().replace("://", "://127.0.0.1:1,");
        use_it(&open(face, Client::builder(&url)), &unique("a"));
    }

    /// Sentinels have a password of their own; the URL's first is that of the server.
    fn passwords(face) {
        let server = |server: stanchion_tests::redis_server::RedisServerBuilder| {
            server.user("app", &format!("on >c4n4ry-pa55w0rd {}", stanchion::ACL_RULE))
        };
        let group = Sentinels::start_with(0, 1, server, "requirepass c4n4ry-pa55w0rd-of-theirs");
        let url = group.url().replace("://", "://app:c4n4ry-pa55w0rd@");
        let right = format!("{url}?sentinel_pass=c4n4ry-pa55w0rd-of-theirs");
        use_it(&open(face, Client::builder(&right)), "a");
        refused(face, &url, ErrorKind::Denied, "sentinel_pass");
        refused(face, &format!("{url}?sentinel_pass=c4n4ry-wrong"), ErrorKind::Denied, "sentinel_pass");
        let wrong = right.replace("app:c4n4ry-pa55w0rd@", "app:c4n4ry-wrong@");
        refused(face, &wrong, ErrorKind::Denied, "credentials");
    }

    /// In a cluster a user needs one right more than elsewhere.
    fn rights_in_a_cluster(face) {
        let cluster = Cluster::start_with(1, 0, |node| {
            let rule = stanchion::ACL_RULE;
            node.user("app", &format!("on >c4n4ry-pa55w0rd {rule} +cluster|slots"))
                .user("less", &format!("on >c4n4ry-pa55w0rd {rule}"))
        });
        let url = |user: &str| cluster.url().replace("://", &format!("://{user}:c4n4ry-pa55w0rd@"));
        let client = open(face, Client::builder(&url("app")));
        use_it(&client, "a");
        assert!(client.all_locks().is_empty());
        refused(face, &url("less"), ErrorKind::Denied, "+cluster|slots");
    }

    /// To Sentinels and to the master, and to each node.
    fn tls(face) {
        let group = Sentinels::start_over_tls();
        let trusting = |url: &str, server: &RedisServer| Client::builder(url).tls_ca(server.ca_file());
        use_it(&open(face, trusting(&group.tls_url(), &group.servers[0])), "a");
        refused(face, &group.tls_url(), ErrorKind::StoreUnavailable, "certificate");
        let cluster = Cluster::start_with(1, 0, |node| node.tls().arg("--tls-cluster", "yes"));
        let url = format!("rediss-cluster://127.0.0.1:{}", cluster.nodes[0].tls_port());
        use_it(&open(face, trusting(&url, &cluster.nodes[0])), "a");
        refused(face, &url, ErrorKind::StoreUnavailable, "certificate");
    }
}

/// TLS files belong to encrypted stores; who names them for others believes what is not so.
#[test]
fn tls_files_for_plain_topologies() {
    for url in ["redis-sentinel://127.0.0.1:1/m", "redis-cluster://127.0.0.1:1"] {
        let error = Client::builder(url).tls_ca("/ca.crt").open_blocking().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        refused(Face::Blocking, &format!("{url}?tls_ca=/ca.crt"), ErrorKind::InvalidArgument, "tls_ca");
    }
}
