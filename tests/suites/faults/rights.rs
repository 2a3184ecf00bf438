//! Users without rights, and passwords.

use stanchion::{ACL_RULE, Client, ErrorKind, HeldAs, LossReason};
use stanchion_tests::RedisServer;
use stanchion_tests::faces::{AnyClient, Face};
use stanchion_tests::wait::{SOON, eventually, eventually_some, holds_within, ran_since, task};

use std::time::Instant;

use crate::{POLL, assert_within, fixed, ms, open, renewed};

fn server(rights: &str) -> RedisServer {
    RedisServer::builder().user("app", &format!("on >c4n4ry-pa55w0rd {rights}")).start()
}

/// Everything the library can do with one client, as `app`.
fn tour(face: Face, url: &str) {
    let (client, other) = (open(face, url), open(Face::Blocking, url));
    let lock = client.lock("tour");
    let lease = lock.acquire(fixed(5_000, 0)).unwrap();
    assert_eq!(lock.holder().unwrap().unwrap().held_as, HeldAs::Lease);
    assert_eq!(client.all_locks(), ["tour"]);
    lease.extend(ms(6_000)).unwrap();

    // A hand-off with its hint, a wait that ends without the lock, and one that gives up at once.
    let waiting = hand_off_to(&other, "tour");
    assert_eq!(lock.acquire(fixed(500, 100)).unwrap_err().kind(), ErrorKind::LockTimeout);
    assert_eq!(lock.acquire(fixed(500, 100).fail_fast(true)).unwrap_err().kind(), ErrorKind::LockTimeout);
    lease.release().unwrap();
    waiting.join();

    let handle = lock.acquire(fixed(5_000, 1_000)).unwrap().detach(ms(5_000)).unwrap();
    let resumed = client.resume_lease(&handle).unwrap();
    resumed.release_with_cooldown(ms(60_000)).unwrap();
    assert!(lock.break_lease().unwrap());
    lock.acquire(renewed(5_000, 10_000)).unwrap().release().unwrap();
    drop(lock.acquire(fixed(5_000, 1_000)).unwrap());
    eventually(SOON, || !lock.is_locked().unwrap());
    assert_eq!(client.release_all().unwrap(), 0);
}

/// A thread that gets the lock after its holder, and releases it.
fn hand_off_to(client: &AnyClient, name: &str) -> stanchion_tests::wait::Task<()> {
    let (lock, seen) = (client.lock(name), client.lock(name));
    let waiting = task(move || lock.acquire(fixed(5_000, 10_000)).unwrap().release().unwrap());
    eventually(SOON, || seen.waiters() == 1);
    waiting
}

#[test]
fn the_rule_is_printed_as_it_is() {
    let printed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md")).unwrap();
    assert!(printed.contains(ACL_RULE), "SECURITY.md has another rule than {ACL_RULE}");
}

on_both_faces! {
    /// The documented rule is enough for everything, exactly as it is printed.
    fn acl_rule_is_sufficient(face) {
        let server = server(ACL_RULE);
        let url = server.url_as("app", "c4n4ry-pa55w0rd");
        tour(face, &url);
        let shared = Client::builder(&url).foreign_share(true);
        let lock = AnyClient::open(face, shared).unwrap().lock("shared");
        let holder = lock.acquire(fixed(5_000, 0)).unwrap();
        let waiting = hand_off_to(&open(face, &url), "shared");
        holder.release().unwrap();
        waiting.join();
        // Taking over a foreign value needs no right of its own.
        server.cli(&["SET", "Lock:foreign", "theirs"]);
        let adopts = fixed(5_000, 10_000).adopt_unexpiring(ms(50));
        open(face, &url).lock("foreign").acquire(adopts).unwrap().release().unwrap();
    }

    /// Without rights on channels everything works by polling; a release with a waiter succeeds.
    fn no_channel_rights(face) {
        let server = server(&ACL_RULE.replace("&stanchion:wake:* ", "resetchannels "));
        let client = open(face, &server.url_as("app", "c4n4ry-pa55w0rd"));
        let lock = client.lock("job");
        let holder = lock.acquire(fixed(60_000, 0)).unwrap();
        let waiting = hand_off_to(&client, "job");
        holder.release().unwrap();
        let released = Instant::now();
        waiting.join();
        assert_within(POLL, released);
        assert!(!lock.is_locked().unwrap());
    }

    /// Each right that is missing is reported as such, or not needed by that call; nothing else happens.
    fn denied(face) {
        let rights = ACL_RULE.split_whitespace().filter_map(|word| word.strip_prefix('+'));
        let rights: Vec<&str> = rights.filter(|right| !right.starts_with('@')).collect();
        let server = server(ACL_RULE);
        for right in rights {
            server.cli(&["ACL", "SETUSER", "app", &format!("-{right}")]);
            for (number, error) in errors_of(face, &server).into_iter().enumerate() {
                let Some(error) = error else { continue };
                assert_eq!(error.kind(), ErrorKind::Denied, "without {right}, call {number}: {error}");
                assert!(error.to_string().contains(ACL_RULE), "without {right}: {error}");
                assert!(!error.is_retryable());
            }
            server.cli(&["ACL", "SETUSER", "app", &format!("+{right}")]);
            server.cli(&["FLUSHALL"]);
        }
    }

    /// An acquire that is denied halfway leaves the lock free.
    fn denied_acquire_leaves_no_orphan(face) {
        let server = server(ACL_RULE);
        for right in ["hset", "hmget", "set", "time", "pexpire", "exists"] {
            server.cli(&["ACL", "SETUSER", "app", &format!("-{right}")]);
            let name = format!("without-{right}");
            let client = open(face, &server.url_as("app", "c4n4ry-pa55w0rd"));
            let result = client.lock(&name).try_acquire(fixed(60_000, 0));
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Denied, "without {right}: {error}");
                let key = format!("Lock:{name}");
                let is_gone = || server.cli(&["EXISTS", &key]) == "0";
                let ends = Instant::now();
                let is_free = holds_within(SOON, is_gone);
                let took = ran_since(ends);
                assert!(is_free && took < ms(500), "without {right}: the denied acquire left the lock held for {took:?}");
            }
            server.cli(&["ACL", "SETUSER", "app", &format!("+{right}")]);
        }
    }

    /// Keys outside of the user's: denied before anything is written.
    fn denied_keys(face) {
        let server = server(ACL_RULE);
        let builder = Client::builder(&server.url_as("app", "c4n4ry-pa55w0rd")).lock_prefix("Other:");
        let lock = AnyClient::open(face, builder).unwrap().lock("job");
        let error = lock.acquire(fixed(500, 1_000)).unwrap_err();
        assert_eq!((error.kind(), error.name()), (ErrorKind::Denied, Some("job")), "{error}");
        assert_eq!(server.cli(&["DBSIZE"]), "0");
    }

    /// User and password come from the URL, with whatever letters they have.
    fn password_in_the_url(face) {
        let server = RedisServer::builder().user("app", &format!("on >s@c:r/t%? {ACL_RULE}")).start();
        tour(face, &server.url_as("app", "s%40c%3Ar%2Ft%25%3F"));
    }

    /// Refused when the client is opened, and the password is not in what is shown.
    fn wrong_password(face) {
        let server = server(ACL_RULE);
        for url in [server.url_as("app", "c4n4ry-pa55w0rd-not"), server.url_as("nobody", "c4n4ry-pa55w0rd-not")] {
            let error = AnyClient::open(face, Client::builder(&url)).expect_err("a wrong password opened the store");
            assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
            assert!(!format!("{error} {error:?}").contains("c4n4ry-pa55w0rd"), "{error}");
        }
    }

    /// New connections are refused: the lease is lost when it would be renewed, and not only at its deadline.
    fn password_changed_at_renewal(face) {
        let server = server(ACL_RULE);
        let client = open(face, &server.url_as("app", "c4n4ry-pa55w0rd"));
        let lock = client.lock("job");
        let lease = lock.acquire(renewed(20_000, 0)).unwrap();
        let change = |from: &str, to: &str| {
            server.cli(&["ACL", "SETUSER", "app", &format!("<{from}"), &format!(">{to}")]);
            server.cli(&["CLIENT", "KILL", "USER", "app"]);
        };
        change("c4n4ry-pa55w0rd", "c4n4ry-pa55w0rd-new");
        let error = eventually_some(SOON, || client.lock("other").try_acquire(fixed(1_000, 0)).err());
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!format!("{error} {error:?}").contains("c4n4ry-pa55w0rd"), "{error}");
        assert!(lease.wait_lost(ms(60_000)));
        assert_eq!(lease.loss(), Some(LossReason::Refused));
        change("c4n4ry-pa55w0rd-new", "c4n4ry-pa55w0rd");
        let another = eventually_some(SOON, || client.lock("other").try_acquire(fixed(1_000, 0)).ok().flatten());
        another.release().unwrap();
        let next = lock.acquire(fixed(1_000, 60_000)).unwrap();
        assert!(next.fence() > lease.fence());
        next.release().unwrap();
    }

    /// A password is wanted and none was given.
    fn no_password(face) {
        let server = RedisServer::builder().user("default", "on >c4n4ry-pa55w0rd ~* &* +@all").start();
        let error = AnyClient::open(face, Client::builder(&server.url())).expect_err("no password was needed");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
}

/// What each call says, made by a user and ended by a stranger, so that a missing right shows everywhere.
fn errors_of(face: Face, server: &RedisServer) -> Vec<Option<stanchion::Error>> {
    let (client, admin) =
        match AnyClient::open(face, Client::builder(&server.url_as("app", "c4n4ry-pa55w0rd"))) {
            Ok(client) => (client, open(Face::Blocking, &server.url())),
            Err(error) => return vec![Some(error)],
        };
    let lock = client.lock("job");
    let mut errors = vec![lock.holder().err(), lock.try_acquire(fixed(30_000, 0)).err()];
    admin.lock("job").break_lease().unwrap();
    let holder = admin.lock("job").acquire(fixed(60_000, 5_000)).unwrap();
    let waiting = lock.acquire(fixed(500, 50)).err();
    errors.push(waiting.filter(|error| error.kind() != ErrorKind::LockTimeout));
    holder.release().unwrap();
    if let Ok(Some(lease)) = lock.try_acquire(fixed(30_000, 0)) {
        errors.push(lease.extend(ms(40_000)).err());
        errors.push(lease.release().err());
    }
    errors.push(lock.break_lease().err());
    errors.push(client.locks(None).err());
    errors
}
