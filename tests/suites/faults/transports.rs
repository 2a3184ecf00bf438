//! TLS and Unix sockets: what is trusted, and what is refused.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use stanchion::{ClaimOptions, Client, ClientBuilder, Error, ErrorKind, Task};
use stanchion_tests::faces::{AnyClient, Face, runtime};
use stanchion_tests::probe::Probe;
use stanchion_tests::wait::{SOON, eventually, task};
use stanchion_tests::{RedisServer, host};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::{POLL, assert_within, fixed, ms, renewed, wait_for_renewal};

/// Acquires, waits for a hand-off with its hint, and renews.
fn use_it(face: Face, builder: &ClientBuilder) {
    let client = AnyClient::open(face, builder.clone()).unwrap();
    let lock = client.lock("job");
    let lease = lock.acquire(fixed(30_000, 0)).unwrap();
    let waiter = lock.clone();
    let waiting = task(move || waiter.acquire(renewed(3_000, 30_000)).unwrap());
    eventually(SOON, || lock.waiters() == 1);
    lease.extend(ms(40_000)).unwrap();
    lease.release().unwrap();
    let released = Instant::now();
    let lease = waiting.join();
    assert_within(POLL, released);
    wait_for_renewal(&lease);
    lease.release().unwrap();
}

fn refused(face: Face, builder: ClientBuilder) -> Error {
    let begun = Instant::now();
    let error = AnyClient::open(face, builder.timeout(ms(1_000))).expect_err("the server was trusted");
    assert_within(ms(1_000), begun);
    error
}

fn openssl(dir: &Path, line: &str) {
    let output = Command::new("openssl").current_dir(dir).args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Gives the server another certificate of its authority.
fn change_certificate(server: &RedisServer, name: &str, line: &str) {
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    openssl(server.dir(), &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
    openssl(
        server.dir(),
        &format!("x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -out {name}.crt {line}"),
    );
    let file = |kind: &str| server.dir().join(format!("{name}.{kind}")).display().to_string();
    let (cert, key) = (file("crt"), file("key"));
    let answer = server.cli(&["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key]);
    assert_eq!(answer, "OK");
}

/// The loop watches the sockets of the calls and of the hints itself: no thread of the runtime does.
#[test]
fn tls_on_a_hosts_event_loop() {
    let server = RedisServer::builder().tls().start();
    let _timers = runtime().enter();
    host::block_on(async {
        let client = Client::builder(&server.tls_url()).tls_ca(server.ca_file()).open().await.unwrap();
        let lock = client.lock("job");
        let lease = lock.acquire(fixed(30_000, 0)).await.unwrap();
        assert_eq!(host::watched(), 1);
        let handing_over = async {
            while lock.waiters().await.unwrap().is_empty() || host::watched() < 2 {
                sleep(ms(10)).await;
            }
            lease.release().await.unwrap();
            Instant::now()
        };
        let (next, released) = tokio::join!(lock.acquire(fixed(30_000, 30_000)), timeout(SOON, handing_over));
        assert_within(POLL, released.unwrap());
        next.unwrap().release().await.unwrap();
        // More than a record, and than a socket takes at once.
        let (queue, payload) = (client.queue("q"), vec![7; 1 << 20]);
        queue.enqueue(Task::new("a").payload(payload.clone())).await.unwrap();
        let claim = queue.claim(ClaimOptions::new()).await.unwrap().remove(0);
        assert!(*claim.payload() == *payload);
        claim.ack().await.unwrap();
    });
}

/// In the same words as on the runtime, when a connection is made again.
#[test]
fn tls_refused_on_a_hosts_event_loop() {
    let server = RedisServer::builder().tls().start();
    let builder = Client::builder(&server.tls_url()).tls_ca(server.ca_file()).timeout(ms(1_000));
    let _timers = runtime().enter();
    let runtime: &Runtime = runtime();
    let on_the_runtime = runtime.block_on(builder.clone().open()).unwrap().lock("job");
    let on_the_loop = host::block_on(builder.open()).unwrap().lock("job");
    assert!(!host::block_on(on_the_loop.is_locked()).unwrap());
    assert_eq!(host::watched(), 1);
    std::fs::write(server.dir().join("host.cnf"), "subjectAltName=DNS:elsewhere.example\n").unwrap();
    change_certificate(&server, "elsewhere", "-CAcreateserial -days 2 -extfile host.cnf");
    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    let refusals = [runtime.block_on(on_the_runtime.is_locked()), host::block_on(on_the_loop.is_locked())];
    let [there, here] = refusals.map(Result::unwrap_err);
    assert_eq!((here.kind(), here.to_string()), (there.kind(), there.to_string()));
    assert!(here.to_string().contains("not trusted"), "{here}");
}

on_both_faces! {
    fn tls_with_the_right_authority(face) {
        let server = RedisServer::builder().tls().start();
        use_it(face, &Client::builder(&server.tls_url()).tls_ca(server.ca_file()));
        let url = format!("{}?tls_ca={}", server.tls_url(), server.ca_file().display());
        use_it(face, &Client::builder(&url));
    }

    /// By the system's authorities, or by those of another: both are strangers to this server.
    fn tls_with_the_wrong_authority(face) {
        let (server, other) = (RedisServer::builder().tls().start(), RedisServer::builder().tls().start());
        let error = refused(face, Client::builder(&server.tls_url()).tls_ca(other.ca_file()));
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        refused(face, Client::builder(&server.tls_url()));
    }

    fn tls_with_the_wrong_host(face) {
        let server = RedisServer::builder().tls().start();
        std::fs::write(server.dir().join("host.cnf"), "subjectAltName=DNS:elsewhere.example\n").unwrap();
        change_certificate(&server, "elsewhere", "-CAcreateserial -days 2 -extfile host.cnf");
        let error = refused(face, Client::builder(&server.tls_url()).tls_ca(server.ca_file()));
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }

    fn tls_with_an_expired_certificate(face) {
        let server = RedisServer::builder().tls().start();
        std::fs::write(server.dir().join("host.cnf"), "subjectAltName=DNS:localhost\n").unwrap();
        change_certificate(&server, "expired", "-CAcreateserial -days 0 -extfile host.cnf");
        let begun = Instant::now();
        // It ends in the second in which it was made.
        eventually(SOON, || begun.elapsed() > ms(1_100));
        let error = refused(face, Client::builder(&server.tls_url()).tls_ca(server.ca_file()));
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.to_string().to_lowercase().contains("expired"), "{error}");
    }

    /// No downgrade in either direction.
    fn tls_to_a_plaintext_port(face) {
        let server = RedisServer::builder().tls().start();
        let url = format!("rediss://localhost:{}/", server.port());
        refused(face, Client::builder(&url).tls_ca(server.ca_file()));
        let url = format!("redis://localhost:{}/", server.tls_port());
        refused(face, Client::builder(&url));
    }

    /// The server asks for the client's certificate.
    fn tls_with_a_client_certificate(face) {
        let server = RedisServer::builder().tls().start();
        server.config_set("tls-auth-clients", "yes");
        let builder = Client::builder(&server.tls_url()).tls_ca(server.ca_file());
        refused(face, builder.clone());
        let (cert, key) = server.client_cert();
        use_it(face, &builder.tls_client(cert, key));
    }

    /// Nothing in the URL turns the checks off.
    fn tls_switches_in_the_url(face) {
        let server = RedisServer::builder().tls().start();
        for switch in ["#insecure", "?insecure=true", "?tls_insecure=1", "?verify=none"] {
            let error = refused(face, Client::builder(&format!("{}{switch}", server.tls_url())));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
    }

    /// A server that knows only RESP2. Hints are heard in RESP3 alone: waiters poll, and all else is as usual.
    fn only_resp2(face) {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("redis.conf");
        std::fs::write(&config, "rename-command HELLO \"\"\n").unwrap();
        let server = RedisServer::builder().arg("--include", &config.display().to_string()).start();
        let hello = redis::cmd("HELLO").arg(3).exec(&mut server.raw()).unwrap_err();
        assert!(hello.to_string().contains("unknown command"), "{hello}");
        let url = server.url();
        use_it(face, &Client::builder(&url));
        let queue = AnyClient::open(face, Client::builder(&url)).unwrap().queue("q");
        let waiter = queue.clone();
        let waiting = task(move || waiter.claim(ClaimOptions::new().wait(SOON)).unwrap().remove(0));
        Probe::open(&url).wait_for_idle("q", 1);
        queue.enqueue(Task::new("a")).unwrap();
        waiting.join().ack().unwrap();
    }

    fn unix_socket(face) {
        let server = RedisServer::start();
        use_it(face, &Client::builder(&server.socket_url()));
        let nowhere = format!("redis+unix://{}", server.dir().join("nothing.sock").display());
        assert_eq!(refused(face, Client::builder(&nowhere)).kind(), ErrorKind::StoreUnavailable);
    }
}
