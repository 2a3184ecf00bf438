//! Limiters while requests and replies are lost, late or doubled, and while the server dies: never more than the limit.

use std::time::{Duration, Instant};

use stanchion::{Client, ErrorKind, Limit, Taken};
use stanchion_tests::faces::{AnyClient, AnyLimiter, Face};
use stanchion_tests::proxy::{Fault, Proxy};
use stanchion_tests::wait::{SOON, eventually};
use stanchion_tests::{RedisServer, shared, unique};

use crate::{ms, open};

const HOUR: Duration = Duration::from_secs(3_600);

/// A limiter behind a proxy, and the same one without.
fn both(face: Face, proxy: &Proxy, limit: Limit) -> (AnyLimiter, AnyLimiter) {
    let name = unique("limiter");
    let limiter = |client: AnyClient| client.limiter(&name, limit).unwrap();
    (limiter(open(face, &proxy.url())), limiter(open(Face::Blocking, &shared().url())))
}

/// Of each kind three in a long time, with its verb.
fn three() -> [(&'static str, Limit); 3] {
    [
        ("gcra_take", Limit::rate(1, HOUR).burst(3)),
        ("fixed_take", Limit::fixed_window(3, 365 * 24 * HOUR)),
        ("sliding_take", Limit::sliding_window(3, HOUR)),
    ]
}

on_both_faces! {
    /// It is sent again, and takes twice: so less is left, never more.
    fn take_reply_lost_after_commit(face) {
        for (verb, limit) in three() {
            for fault in [Fault::SwallowReply, Fault::CutAfter, Fault::DelayReply(ms(1_100))] {
                let proxy = Proxy::start(shared());
                let (limiter, truth) = both(face, &proxy, limit);
                proxy.fault(verb, 1, fault.clone());
                assert_eq!(limiter.try_take(1).unwrap(), Taken::Allowed, "{verb}, {fault:?}");
                assert_eq!((proxy.faults_left(), proxy.count(verb)), (0, 2), "{verb}, {fault:?}");
                assert_eq!(truth.try_take(1).unwrap(), Taken::Allowed, "{verb}, {fault:?}");
                assert!(!truth.try_take(1).unwrap().is_allowed(), "{verb}, {fault:?}");
            }
        }
    }

    fn take_that_never_reached_the_server_takes_once(face) {
        for (verb, limit) in three() {
            for fault in [Fault::CutBefore, Fault::Drop] {
                let proxy = Proxy::start(shared());
                let (limiter, truth) = both(face, &proxy, limit);
                proxy.fault(verb, 1, fault.clone());
                assert_eq!(limiter.try_take(1).unwrap(), Taken::Allowed, "{verb}, {fault:?}");
                assert_eq!(truth.try_take(2).unwrap(), Taken::Allowed, "{verb}, {fault:?}");
                assert!(!truth.try_take(1).unwrap().is_allowed(), "{verb}, {fault:?}");
            }
        }
    }

    /// The wait counts from when the answer came, however late.
    fn take_reply_late(face) {
        for limit in [Limit::rate(1, ms(500)), Limit::sliding_window(1, ms(500))] {
            let proxy = Proxy::start(shared());
            let (limiter, truth) = both(face, &proxy, limit);
            let begun = Instant::now();
            assert_eq!(truth.try_take(1).unwrap(), Taken::Allowed);
            for verb in ["gcra_take", "sliding_take"] {
                proxy.fault(verb, 1, Fault::DelayReply(ms(400)));
            }
            assert_eq!(limiter.take(1, SOON).unwrap(), Taken::Allowed);
            assert!(begun.elapsed() >= ms(500), "it began after {:?}", begun.elapsed());
        }
    }

    /// The copy of a request to give back that comes late would give back what another has reserved meanwhile.
    fn give_back_doubled_and_late(face) {
        let proxy = Proxy::start(shared());
        let (limiter, truth) = both(face, &proxy, Limit::rate(1, HOUR / 4));
        assert_eq!(truth.try_take(1).unwrap(), Taken::Allowed);
        let left = || truth.try_take(1).unwrap().retry_after().unwrap();
        let gives_up = |reserved: Duration| {
            let taken = limiter.take_while(1, HOUR, || {
                if left() > reserved { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
            });
            assert!(taken.is_none_or(|taken| taken.is_err()));
        };
        proxy.fault("gcra_give_back", 1, Fault::CutAndLate(ms(300)));
        gives_up(HOUR / 4);
        // Sent again, it is given back; another reserves the same place, and then the first copy arrives.
        eventually(SOON, || left() <= HOUR / 4);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let waits = truth.take_while(1, HOUR, || match proxy.late("gcra_give_back") {
                    0 => std::ops::ControlFlow::Continue(()),
                    _ => std::ops::ControlFlow::Break(()),
                });
                waits.expect("the truth is blocking").unwrap_err().kind()
            });
            eventually(SOON, || left() > HOUR / 4 || proxy.late("gcra_give_back") > 0);
            eventually(SOON, || proxy.late("gcra_give_back") == 1);
            assert_eq!(other.join().unwrap(), ErrorKind::Cancelled);
        });
        // Given back by its own caller, once.
        eventually(SOON, || left() <= HOUR / 4);
        assert!(left() > HOUR / 8, "one that began was given back");
    }

    /// A server that comes back empty knows nothing of what was taken.
    fn server_killed_and_empty(face) {
        let server = RedisServer::start();
        let client = AnyClient::open(face, Client::builder(&server.url()).timeout(ms(700))).unwrap();
        let limiter = client.limiter("api", Limit::rate(1, HOUR)).unwrap();
        assert_eq!(limiter.try_take(1).unwrap(), Taken::Allowed);
        server.kill9();
        let error = limiter.try_take(1).unwrap_err();
        assert!([ErrorKind::StoreUnavailable, ErrorKind::Indeterminate].contains(&error.kind()), "{error}");
        let error = limiter.take(1, HOUR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "it does not wait for a store that is gone");
        server.start_again();
        eventually(SOON, || limiter.try_take(1).is_ok_and(Taken::is_allowed));
    }

    fn server_that_forgets_its_scripts(face) {
        let server = RedisServer::start();
        let client = open(face, &server.url());
        for (verb, limit) in three() {
            let limiter = client.limiter(verb, limit).unwrap();
            for _ in 0..3 {
                server.cli(&["SCRIPT", "FLUSH"]);
                assert_eq!(limiter.try_take(1).unwrap(), Taken::Allowed, "{verb}");
            }
            assert!(!limiter.try_take(1).unwrap().is_allowed(), "{verb}");
        }
    }
}
