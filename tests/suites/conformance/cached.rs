//! store_value and invalidate: values that one caller at a time computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stanchion::{CachedOptions, Error, ErrorKind, LockOptions, MAX_PAYLOAD};
use stanchion_tests::faces::{AnyBegun, AnyClient};
use stanchion_tests::wait::{
    SOON, Task, eventually, eventually_async, eventually_some, ran_since, task, within,
};
use stanchion_tests::{async_on_every_store, on_every_store, on_every_topology};

use crate::{ms, secs, timed};

/// Any bytes: a text's end and no text at all.
const VALUE: &[u8] = b"a\0b\xff\r\n";

fn fresh() -> CachedOptions {
    lasting(secs(60)).wait(secs(30))
}

/// A machine that stands still for a second is not a store that does not answer.
fn lasting(ttl: Duration) -> CachedOptions {
    CachedOptions::new(ttl).without_store(false)
}

/// A caller who must not compute.
fn get(client: &AnyClient) -> Vec<u8> {
    client.begin_cached("a", fresh()).expect("the cached value").value()
}

/// A thread that asks for the value, and computes `own` if need be.
fn asks(client: &AnyClient, own: &'static str) -> Task<Vec<u8>> {
    let client = client.clone();
    task(move || client.cached("a", fresh(), || Ok(own.into())).expect("the value"))
}

fn wait_for(client: &AnyClient, waiters: u64) {
    eventually(SOON, || client.computation("a").waiters() == waiters);
}

on_every_topology! {
    fn a_value_is_computed_once_and_then_answered(bench) {
        let client = bench.client();
        assert_eq!(client.cached("a", secs(60), || Ok(VALUE.into())).unwrap(), VALUE);
        assert_eq!(get(&client), VALUE);
        assert_eq!(get(&bench.client()), VALUE);
        assert!(!client.computation("a").is_locked().unwrap());
        client.cached("empty", secs(60), || Ok(Vec::new())).unwrap();
        assert_eq!(client.begin_cached("empty", secs(60)).unwrap().value(), b"", "nothing is a value too");
    }

    /// They have just polled, so without a hint they would ask again after half a second at the earliest.
    fn all_who_wait_get_the_value_at_once(bench) {
        let client = bench.client();
        let ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        let waiters: Vec<_> = (0..5).map(|_| asks(&bench.client(), "own")).collect();
        wait_for(&client, 5);
        let (values, took) = timed(|| {
            assert!(ticket.store(VALUE).unwrap());
            waiters.into_iter().map(Task::join).collect::<Vec<_>>()
        });
        assert_eq!(values, [VALUE; 5]);
        assert!(took.less_than(ms(350)), "they got it after {took:?}");
        assert!(!client.computation("a").is_locked().unwrap());
    }

    fn a_computation_that_fails_is_left_to_the_next(bench) {
        let client = bench.client();
        let ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        let (one, two) = (asks(&bench.client(), "one"), asks(&bench.client(), "two"));
        wait_for(&client, 2);
        let line = client.computation("a").who_waits().unwrap();
        assert!(line.iter().all(|waiter| waiter.pid == std::process::id()), "{line:?}");
        let ((one, two), took) = timed(|| {
            drop(ticket);
            (one.join(), two.join())
        });
        assert!(one == two && (one == b"one" || one == b"two"), "{one:?} and {two:?}");
        assert!(took.less_than(ms(450)), "they got it after {took:?}");
        assert_eq!(get(&client), one);
    }

    fn an_error_of_the_computation_goes_on_and_nothing_is_stored(bench) {
        let client = bench.client();
        let own = client.lock("").acquire(LockOptions::new()).unwrap_err();
        let error = client.cached("a", fresh(), || Err(own)).unwrap_err();
        assert_eq!(error.operation(), Some("lock"), "{error}");
        assert_eq!(bench.client().cached("a", fresh(), || Ok(b"next".into())).unwrap(), b"next");
    }

    fn a_stale_value_is_answered_while_one_computes(bench) {
        let (one, two) = (bench.client(), bench.client());
        one.cached("a", lasting(ms(40)).stale(secs(60)), || Ok(b"old".into())).unwrap();
        // How long a value is fresh comes with the value.
        let stale = || lasting(secs(60)).stale(secs(60)).beta(0.0);
        let ticket = eventually_some(SOON, || match one.begin_cached("a", stale()).unwrap() {
            AnyBegun::Compute(ticket) => Some(ticket),
            AnyBegun::Value(value) => {
                assert_eq!(value, b"old");
                None
            }
        });
        assert_eq!(two.begin_cached("a", stale()).unwrap().value(), b"old");
        assert!(ticket.store("new").unwrap());
        assert_eq!(two.begin_cached("a", fresh().beta(0.0)).unwrap().value(), b"new");
    }

    fn a_stale_value_stays_when_its_computation_fails(bench) {
        let client = bench.client();
        let stale = || lasting(ms(1)).stale(secs(60));
        client.cached("a", stale(), || Ok(b"old".into())).unwrap();
        let ticket = eventually_some(SOON, || match client.begin_cached("a", stale()).unwrap() {
            AnyBegun::Compute(ticket) => Some(ticket),
            AnyBegun::Value(_) => None,
        });
        ticket.release().unwrap();
        let next = client.begin_cached("a", stale()).unwrap().ticket();
        assert_eq!(bench.client().begin_cached("a", stale()).unwrap().value(), b"old");
        next.release().unwrap();
    }

    fn a_value_that_is_over_is_computed_anew(bench) {
        let client = bench.client();
        client.cached("a", ms(30), || Ok(b"old".into())).unwrap();
        eventually(SOON, || client.cached("a", ms(30), || Ok(b"new".into())).unwrap() == b"new");
    }

    fn an_invalidated_value_is_computed_anew(bench) {
        let client = bench.client();
        client.invalidate("a").unwrap();
        client.cached("a", fresh(), || Ok(b"old".into())).unwrap();
        bench.client().invalidate("a").unwrap();
        assert_eq!(client.cached("a", fresh(), || Ok(b"new".into())).unwrap(), b"new");
    }

    /// It has begun with what was before.
    fn an_invalidation_ends_the_computation_under_way(bench) {
        let client = bench.client();
        let before = client.begin_cached("a", fresh()).unwrap().ticket();
        let waiting = asks(&bench.client(), "after");
        wait_for(&client, 1);
        client.invalidate("a").unwrap();
        assert_eq!(waiting.join(), b"after");
        assert!(!before.store("before").unwrap(), "it was not stored");
        assert_eq!(get(&client), b"after");
    }

    fn a_computation_whose_lease_was_lost_stores_nothing(bench) {
        let (one, two) = (bench.client(), bench.client());
        let late = one.begin_cached("a", fresh()).unwrap().ticket();
        assert!(one.computation("a").break_lease().unwrap());
        let next = two.begin_cached("a", fresh()).unwrap().ticket();
        assert!(!late.store("late").unwrap());
        assert!(next.is_valid());
        assert!(next.store("next").unwrap());
        assert_eq!(get(&one), b"next");
    }

    fn who_waits_too_long_is_told(bench) {
        let client = bench.client();
        let _ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        for wait in [ms(0), ms(30)] {
            let error = bench.client().begin_cached("a", fresh().wait(wait)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}");
        }
        assert_eq!(client.computation("a").waiters(), 0);
    }

    fn a_lock_of_the_same_name_is_another(bench) {
        let client = bench.client();
        let _lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        let _permit = client.semaphore("a", 1).acquire(LockOptions::new()).unwrap();
        let ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        assert_eq!(client.computations(), ["a"], "whose computation is under way");
        assert!(ticket.store(VALUE).unwrap());
        assert_eq!(client.computations(), Vec::<String>::new());
    }

    fn bad_arguments_are_invalid_and_change_nothing(bench) {
        let client = bench.client();
        let invalid = |error: Error| assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        invalid(client.begin_cached("", fresh()).unwrap_err());
        invalid(client.begin_cached("a", ms(0)).unwrap_err());
        invalid(client.begin_cached("a", fresh().beta(-1.0)).unwrap_err());
        invalid(client.invalidate("a\n").unwrap_err());
        invalid(client.cached("a", fresh(), || Ok(vec![0; MAX_PAYLOAD + 1])).unwrap_err());
        invalid(client.computation("a").acquire(LockOptions::new()).unwrap_err());
        let largest = vec![7; MAX_PAYLOAD];
        assert!(client.cached("a", fresh(), || Ok(largest.clone())).unwrap() == largest, "the next computes");
        assert!(get(&client) == largest);
    }
}

on_every_store! {
    /// More than one script wakes; those that it wakes do the rest.
    fn a_crowd_is_woken_without_waiting_for_its_polls(bench) {
        let client = bench.client();
        let ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        let clients: Vec<_> = (0..70).map(|_| bench.client()).collect();
        let waiters: Vec<_> = clients.iter().map(|client| asks(client, "own")).collect();
        wait_for(&client, 70);
        let begun = std::time::Instant::now();
        assert!(ticket.store(VALUE).unwrap());
        assert!(waiters.into_iter().map(Task::join).all(|value| value == VALUE));
        assert!(ran_since(begun) < ms(400), "they got it after {:?}", ran_since(begun));
        eventually(SOON, || client.computation("a").waiters() == 0);
    }

    /// The others of its client have the value from the one that waits in line.
    fn of_each_client_one_waits_in_line(bench) {
        let (one, two) = (bench.client(), bench.client());
        let ticket = one.begin_cached("a", fresh()).unwrap().ticket();
        let impatient = || two.begin_cached("a", fresh().wait(ms(200)));
        let first = task({
            let two = two.clone();
            move || two.begin_cached("a", fresh().wait(ms(1_500))).unwrap_err().kind()
        });
        wait_for(&one, 1);
        let waiters: Vec<_> = (0..30).map(|_| asks(&two, "own")).collect();
        assert_eq!(impatient().unwrap_err().kind(), ErrorKind::LockTimeout);
        assert_eq!(first.join(), ErrorKind::LockTimeout, "and another waits in its place");
        wait_for(&one, 1);
        assert!(waiters.iter().all(|waiter| !waiter.has_ended()));
        assert!(ticket.store(VALUE).unwrap());
        assert!(waiters.into_iter().map(Task::join).all(|value| value == VALUE));
    }

    fn the_next_of_its_client_computes_if_the_first_fails(bench) {
        let client = bench.client();
        let ticket = client.begin_cached("a", fresh()).unwrap().ticket();
        let waiters: Vec<_> = (0..10).map(|_| asks(&client, "own")).collect();
        wait_for(&client, 1);
        drop(ticket);
        assert!(waiters.into_iter().map(Task::join).all(|value| value == b"own"));
    }

    fn two_hundred_callers_compute_once(bench) {
        let clients: Vec<_> = (0..4).map(|_| bench.client()).collect();
        let computed = Arc::new(AtomicU32::new(0));
        let callers = (0..200).map(|number| {
            let (client, computed) = (clients[number % 4].clone(), Arc::clone(&computed));
            task(move || {
                client.cached("a", fresh(), || {
                    computed.fetch_add(1, Ordering::Relaxed);
                    Ok(VALUE.into())
                })
            })
        });
        let callers: Vec<_> = callers.collect();
        assert!(callers.into_iter().all(|caller| caller.join_within(3 * SOON).unwrap() == VALUE));
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }
}

async_on_every_store! {
    async fn a_dropped_computation_is_left_to_the_next(bench) {
        let open = || stanchion::Client::open(bench.url());
        let (one, two) = (open().await.unwrap(), open().await.unwrap());
        let dropped = tokio::spawn(async move {
            one.cached("a", fresh(), || async {
                std::future::pending::<()>().await;
                Ok::<_, Error>("never")
            })
            .await
        });
        eventually_async(SOON, || async { two.computation("a").is_locked().await.unwrap() }).await;
        let waiting = two.cached("a", fresh(), || async { Ok::<_, Error>("next") });
        let mut waiting = Box::pin(waiting);
        let registered = eventually_async(SOON, || async {
            two.computation("a").holder().await.unwrap().is_some_and(|holder| holder.waiters == 1)
        });
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("two compute"),
            () = registered => {}
        }
        let begun = std::time::Instant::now();
        dropped.abort();
        assert_eq!(within(SOON, waiting).await.unwrap(), b"next");
        assert!(ran_since(begun) < ms(350), "it took {:?}", ran_since(begun));
    }
}

on_both_faces! {
    fn a_value_is_fresh_then_stale_then_gone(fixture) {
        let options = || lasting(secs(60)).stale(secs(30)).beta(0.0);
        let begin = || fixture.two.begin_cached("a", options()).unwrap();
        fixture.one.cached("a", options(), || Ok(b"old".into())).unwrap();
        fixture.clock.advance(ms(59_999));
        assert_eq!(begin().value(), b"old");
        fixture.clock.advance(ms(1));
        let ticket = begin().ticket();
        assert_eq!(begin().value(), b"old", "stale, while another computes");
        fixture.clock.advance(ms(29_999));
        assert_eq!(begin().value(), b"old");
        fixture.clock.advance(ms(1));
        drop(ticket);
        eventually(SOON, || !fixture.one.computation("a").is_locked().unwrap());
        begin().ticket().release().unwrap();
    }

    fn a_value_is_refreshed_early_by_one(fixture) {
        let options = |beta| lasting(secs(1_000)).beta(beta);
        let ticket = fixture.one.begin_cached("a", options(1.0)).unwrap().ticket();
        fixture.clock.advance(secs(10));
        assert!(ticket.store("old").unwrap());
        let begin = |beta| fixture.two.begin_cached("a", options(beta)).unwrap();
        assert_eq!(begin(0.0).value(), b"old");
        assert_eq!(begin(1.0).value(), b"old", "a hundred computation times before the end");
        // With such a beta the lot nearly always falls on the caller.
        let ticket = eventually_some(SOON, || match begin(1_000.0) {
            AnyBegun::Compute(ticket) => Some(ticket),
            AnyBegun::Value(_) => None,
        });
        assert_eq!(begin(1_000.0).value(), b"old", "one at a time");
        assert!(ticket.store("new").unwrap());
        assert_eq!(begin(0.0).value(), b"new");
    }

    fn whoever_has_waited_does_not_refresh_what_is_new_by_then(fixture) {
        // With such a beta the lot nearly always falls on the caller.
        let options = || fresh().beta(1_000.0);
        for caller in 0..5 {
            let name = format!("a{caller}");
            let ticket = fixture.one.begin_cached(&name, options()).unwrap().ticket();
            let (two, own) = (fixture.two.clone(), name.clone());
            let waiting = task(move || two.cached(&own, options(), || Ok(b"own".into())).unwrap());
            eventually(SOON, || fixture.one.computation(&name).waiters() == 1);
            fixture.clock.advance(secs(10));
            assert!(ticket.store("new").unwrap());
            assert_eq!(waiting.join(), b"new");
        }
    }

    fn a_computation_that_takes_too_long_is_taken_over(fixture) {
        let options = || fresh().lease(secs(10)).max_run(secs(10));
        let late = fixture.one.begin_cached("a", options()).unwrap().ticket();
        fixture.clock.advance(secs(11));
        let next = fixture.two.begin_cached("a", options()).unwrap().ticket();
        assert!(!late.is_valid());
        assert!(!late.store("late").unwrap());
        assert!(next.store("next").unwrap());
    }
}

/// Also if the ticket lives on.
#[test]
fn a_value_that_is_too_large_leaves_the_computation_to_the_next() {
    let client = stanchion::blocking::Client::open("memory:").unwrap();
    let begun = client.begin_cached("a", secs(60)).unwrap();
    let stanchion::blocking::Begun::Compute(ticket) = begun else { panic!("there was a value") };
    let error = ticket.store(vec![0; (16 << 20) + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    eventually(SOON, || !client.computation("a").is_locked().unwrap());
    drop(ticket);
}

/// A future that is held but not polled must not hold up the others of its client.
#[test]
fn a_caller_that_is_not_run_holds_up_nobody() {
    stanchion_tests::faces::runtime().block_on(async {
        let name = format!("memory:{}", stanchion_tests::unique("held"));
        let one = stanchion::Client::open(&name).await.unwrap();
        let other = stanchion::Client::open(&name).await.unwrap();
        let stanchion::Begun::Compute(ticket) = other.begin_cached("a", secs(60)).await.unwrap() else {
            panic!("there was a value")
        };
        let options = || lasting(secs(60)).wait(secs(60));
        let mut held = Box::pin(one.begin_cached("a", options()));
        assert!(tokio::time::timeout(ms(50), &mut held).await.is_err(), "it waits in line");
        let same = one.clone();
        let follower = tokio::spawn(async move { same.begin_cached("a", options()).await });
        tokio::time::timeout(SOON, async { ticket.store("v").await.unwrap() }).await.unwrap();
        let begun = tokio::time::timeout(SOON, follower).await.expect("it had the value in time").unwrap();
        assert!(matches!(begun.unwrap(), stanchion::Begun::Value(value) if value == b"v"));
        drop(held);
    });
}
