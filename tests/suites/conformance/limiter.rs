//! take, give_back: limiters.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stanchion::{ErrorKind, Limit, LimitKind, LockOptions, Taken};
use stanchion_tests::faces::{AnyClient, AnyLimiter};
use stanchion_tests::wait::{SOON, eventually, task};
use stanchion_tests::{on_every_store, on_every_topology, on_stores};

use crate::{ms, secs};

const HOUR: Duration = Duration::from_secs(3_600);

/// One in an hour, of each kind. Windows are those of the store's clock, so the next one may begin at any time: one of a year
/// ends while no test runs, but at New Year.
fn one_in_a_long_time() -> [Limit; 3] {
    [Limit::rate(1, HOUR), Limit::fixed_window(1, 365 * 24 * HOUR), Limit::sliding_window(1, HOUR)]
}

fn limiter(client: &AnyClient, limit: Limit) -> AnyLimiter {
    client.limiter("api", limit).unwrap()
}

/// When to try again.
fn retry(taken: Taken) -> Duration {
    taken.retry_after().expect("it is refused")
}

/// Takes, and then waits for an hour; once that is begun, `interrupt` ends it.
fn waits_in_vain(limiter: &AnyLimiter, begun: impl Fn() -> bool + Sync) {
    let came = Instant::now();
    let is_over = || begun() || came.elapsed() > 2 * SOON;
    let taken = limiter
        .take_while(1, HOUR, || if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    assert!(came.elapsed() < 2 * SOON, "what is waited for has not come");
    if let Some(taken) = taken {
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

on_every_topology! {
    fn those_that_are_used_are_listed(bench) {
        let client = bench.client();
        let listed = |kind| {
            let (mut all, mut page) = (Vec::new(), None);
            loop {
                let found = client.limiters(kind, page).unwrap();
                all.extend(found.limiters);
                page = found.next;
                if page.is_none() {
                    break;
                }
            }
            all.retain(|one| one.name.starts_with("api"));
            all.sort_by(|one, other| one.name.cmp(&other.name));
            all.dedup_by(|one, other| one.name == other.name);
            all
        };
        assert_eq!(listed(LimitKind::Gcra), []);
        for limit in one_in_a_long_time() {
            for name in ["api", "api:{7}"] {
                assert!(client.limiter(name, limit).unwrap().try_take(1).unwrap().is_allowed());
            }
            let found = listed(limit.kind());
            assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["api", "api:{7}"]);
            for one in found {
                assert_eq!(one.kind, limit.kind());
                assert!(one.idle_in <= limit_time(limit) && !one.idle_in.is_zero(), "{one:?}");
            }
        }
    }

    fn each_kind_allows_its_limit_and_says_when_there_is_more(bench) {
        let (one, other) = (bench.client(), bench.client());
        for limit in [
            Limit::rate(1, HOUR).burst(3),
            Limit::fixed_window(3, 365 * 24 * HOUR),
            Limit::sliding_window(3, HOUR),
        ] {
            let (one, other) = (limiter(&one, limit), limiter(&other, limit));
            assert_eq!((one.name(), one.limit()), ("api", limit));
            assert_eq!(one.try_take(2).unwrap(), Taken::Allowed);
            assert!(!other.try_take(2).unwrap().is_allowed());
            assert_eq!(other.try_take(1).unwrap(), Taken::Allowed, "what is refused takes nothing");
            let first = retry(one.try_take(1).unwrap());
            assert!(first <= limit_time(limit) && !first.is_zero(), "{first:?}");
            assert!(retry(other.try_take(1).unwrap()) <= first, "time passes");
        }
    }

    fn whoever_waits_is_in_line_and_is_never_early(bench) {
        for limit in [Limit::rate(10, secs(1)), Limit::sliding_window(1, ms(100))] {
            let (client, other) = (bench.client(), bench.client());
            let begun = Instant::now();
            assert_eq!(limiter(&client, limit).try_take(1).unwrap(), Taken::Allowed);
            let waiting = task(move || {
                (0..5).map(|_| limiter(&other, limit).take(1, SOON).unwrap()).collect::<Vec<_>>()
            });
            let mine: Vec<_> = (0..5).map(|_| limiter(&client, limit).take(1, SOON).unwrap()).collect();
            assert_eq!([mine, waiting.join()].concat(), [Taken::Allowed; 10]);
            assert!(begun.elapsed() >= secs(1), "eleven in {:?}", begun.elapsed());
        }
    }

    fn a_wait_that_would_be_too_long_is_refused_at_once(bench) {
        for limit in one_in_a_long_time() {
            let limiter = limiter(&bench.client(), limit);
            assert_eq!(limiter.take(1, HOUR).unwrap(), Taken::Allowed);
            let told = retry(limiter.take(1, secs(60)).unwrap());
            assert!(told > secs(60) && told <= limit_time(limit), "{told:?}");
            assert!(retry(limiter.try_take(1).unwrap()) <= told, "nothing was reserved");
        }
    }

    fn a_wait_that_is_given_up_gives_its_turn_back(bench) {
        for limit in [Limit::rate(1, HOUR), Limit::sliding_window(1, HOUR)] {
            let (one, other) = (bench.client(), bench.client());
            let (waits, looks) = (limiter(&one, limit), limiter(&other, limit));
            assert_eq!(waits.try_take(1).unwrap(), Taken::Allowed);
            let is_reserved = || retry(looks.try_take(1).unwrap()) > HOUR;
            waits_in_vain(&waits, is_reserved);
            eventually(SOON, || !is_reserved());
        }
    }

    fn a_turn_with_somebody_behind_it_is_not_given_back(bench) {
        for limit in [Limit::rate(1, HOUR / 2), Limit::sliding_window(1, HOUR / 2)] {
            let (one, other) = (bench.client(), bench.client());
            let first = limiter(&one, limit);
            assert_eq!(first.try_take(1).unwrap(), Taken::Allowed);
            let is_over = AtomicBool::new(false);
            let behind = || retry(limiter(&other, limit).try_take(1).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| waits_in_vain(&first, || is_over.load(Ordering::SeqCst)));
                eventually(SOON, || behind() > HOUR / 2);
                // Of two half hours, less what has passed: that is no more than an hour.
                let second = limiter(&one, limit);
                waits_in_vain(&second, || {
                    let has_come = behind() > HOUR;
                    if has_come {
                        is_over.store(true, Ordering::SeqCst);
                    }
                    has_come
                });
            });
            assert!(one.linger(SOON));
            // The last of them gave its turn back. The first did so, too, if it was then the last; but never both turns.
            let left = behind();
            assert!(left <= HOUR, "{left:?}");
        }
    }

    fn kinds_and_locks_of_one_name_know_nothing_of_each_other(bench) {
        let client = bench.client();
        let lease = client.lock("api").acquire(LockOptions::new()).unwrap();
        for limit in one_in_a_long_time() {
            assert_eq!(limiter(&client, limit).try_take(1).unwrap(), Taken::Allowed);
            assert!(!limiter(&client, limit).try_take(1).unwrap().is_allowed());
        }
        lease.release().unwrap();
        assert_eq!(client.all_locks(), [""; 0], "a limiter is no lock");
    }
}

fn limit_time(limit: Limit) -> Duration {
    match limit.kind() {
        LimitKind::FixedWindow => 365 * 24 * HOUR,
        _ => HOUR,
    }
}

on_every_store! {
    fn what_can_never_be_allowed_is_invalid_before_any_call(bench) {
        let client = bench.client();
        let bad = client.limiter("api", Limit::rate(0, secs(1))).unwrap_err();
        assert_eq!((bad.kind(), bad.name()), (ErrorKind::InvalidArgument, Some("api")));
        assert_eq!(client.limiter("{", Limit::rate(1, secs(1))).unwrap_err().kind(), ErrorKind::InvalidArgument);
        for (limit, most) in [
            (Limit::rate(10, secs(1)), 1),
            (Limit::rate(10, secs(1)).burst(3), 3),
            (Limit::fixed_window(4, secs(1)), 4),
            (Limit::sliding_window(4, secs(1)), 4),
        ] {
            let name = format!("{}{most}", limit.kind().name());
            let limiter = client.limiter(&name, limit).unwrap();
            for count in [0, most + 1, u32::MAX] {
                assert_eq!(limiter.try_take(count).unwrap_err().kind(), ErrorKind::InvalidArgument, "{count}");
            }
            let long = limiter.take(1, HOUR + ms(1)).unwrap_err();
            assert_eq!(long.kind(), ErrorKind::InvalidArgument);
            assert_eq!(long.to_string(), format!("take {name:?}: wait 3600.001s is over 1 h"));
            assert_eq!(limiter.try_take(most).unwrap(), Taken::Allowed, "nothing was taken");
        }
    }

    fn takes_are_counted(bench) {
        let client = bench.client();
        let counted = || {
            ["allowed", "waited", "refused", "cancelled", "failed"].map(|outcome| {
                client.metrics().get(&format!("stanchion_limiter_takes_total{{outcome=\"{outcome}\"}}")).unwrap()
            })
        };
        let waits = || client.metrics().get("stanchion_limiter_wait_seconds_count").unwrap();
        let quick = limiter(&client, Limit::rate(20, secs(1)));
        for _ in 0..2 {
            assert_eq!(quick.take(1, SOON).unwrap(), Taken::Allowed);
        }
        let hourly = client.limiter("hourly", Limit::rate(1, HOUR)).unwrap();
        assert_eq!(hourly.take(1, SOON).unwrap(), Taken::Allowed);
        assert!(!hourly.take(1, SOON).unwrap().is_allowed());
        hourly.try_take(2).unwrap_err();
        // A machine that stood still had nothing to wait for.
        let [allowed, waited, refused, cancelled, failed] = counted();
        assert_eq!((allowed + waited, refused, cancelled, failed), (3.0, 1.0, 0.0, 0.0));
        assert_eq!(waits(), waited);
        let looks = bench.client().limiter("hourly", Limit::rate(1, HOUR)).unwrap();
        waits_in_vain(&hourly, || retry(looks.try_take(1).unwrap()) > HOUR);
        assert_eq!(counted()[3], 1.0);
    }

    fn a_client_that_is_closed_ends_its_waits_and_gives_turns_back(bench) {
        let (client, other) = (bench.client(), bench.client());
        let hourly = limiter(&client, Limit::rate(1, HOUR));
        assert_eq!(hourly.try_take(1).unwrap(), Taken::Allowed);
        let waiting = task(move || hourly.take(1, HOUR));
        let looks = limiter(&other, Limit::rate(1, HOUR));
        eventually(SOON, || retry(looks.try_take(1).unwrap()) > HOUR);
        client.close().unwrap();
        assert_eq!(waiting.join().unwrap_err().kind(), ErrorKind::Closed);
        eventually(SOON, || retry(looks.try_take(1).unwrap()) <= HOUR);
    }
}

on_stores! {
    [quorum]
    fn a_quorum_has_no_limiters(bench) {
        let limiter = limiter(&bench.client(), Limit::rate(1, secs(1)));
        assert_eq!(limiter.try_take(1).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(limiter.take(1, secs(1)).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

on_both_faces! {
    fn a_wait_ends_when_the_clock_says_so(fixture) {
        for limit in [Limit::rate(1, secs(10)), Limit::fixed_window(1, secs(10)), Limit::sliding_window(1, secs(10))] {
            let (one, two) = (limiter(&fixture.one, limit), limiter(&fixture.two, limit));
            assert_eq!(one.try_take(1).unwrap(), Taken::Allowed);
            let told = retry(two.try_take(1).unwrap());
            let looks = one.clone();
            let waiting = task(move || two.take(1, HOUR).unwrap());
            eventually(SOON, || retry(looks.try_take(1).unwrap()) > secs(10));
            fixture.clock.advance(told);
            assert_eq!(waiting.join(), Taken::Allowed);
            assert_eq!(retry(one.try_take(1).unwrap()), secs(10));
            fixture.clock.advance(secs(10));
            assert_eq!(one.try_take(1).unwrap(), Taken::Allowed);
        }
    }
}
