//! Claims that are given up: at every step, with requests and replies delayed or lost. Afterwards every task
//! is where it was, uncounted, and nobody is registered who is not there.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stanchion::{Client, ErrorKind, Worker, blocking};
use stanchion_tests::faces::{AnyQueue, Face, runtime};
use stanchion_tests::probe::Probe;
use stanchion_tests::proxy::Proxy;
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, holds_within, ran_since, task};
use stanchion_tests::{shared, unique};

use crate::giving_up::{Polls, faults, late};
use crate::queue_support::{await_one, census, leased, put};
use crate::{ms, open};

/// Fails unless everything is as if the claim had never been. Its request may still be on its way.
#[track_caller]
pub(crate) fn assert_untouched(queue: &AnyQueue, probe: &Probe, tasks: &[&str], what: &str) {
    let mut popped = Vec::new();
    let all_came = holds_within(SOON, || {
        popped.extend(queue.pop(10).unwrap());
        popped.len() >= tasks.len()
    });
    assert!(all_came, "{what}: {} came back, the rest: {:?}", popped.len(), census(queue));
    let mut ids: Vec<&str> = popped.iter().map(|task| task.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, tasks, "{what}");
    for task in &popped {
        assert_eq!(task.attempts, 1, "{what}: {} was counted more than by the pop", task.id);
    }
    assert_eq!(census(queue), [0; 4], "{what}");
    probe.wait_for_idle(queue.name(), 0);
}

/// The future is dropped at each of its await points, with tasks there, and while it waits for some.
#[test]
fn cancelled_claim_leaves_nothing_at_any_await() {
    let truth_client = open(Face::Blocking, &shared().url());
    let probe = Probe::open(&shared().url());
    for fault in faults() {
        let proxy = Proxy::start(shared());
        let client = runtime().block_on(Client::open(&proxy.url())).unwrap();
        for tasks in [&["a", "b"][..], &[]] {
            for left in 1..=6 {
                let name = unique("cancelled");
                let truth = truth_client.queue(&name);
                put(&truth, tasks);
                proxy.behave();
                if let Some(fault) = &fault {
                    proxy.fault("claim", 1, fault.clone());
                }
                let queue = client.queue(&name);
                let arrived = || late(&proxy, fault.as_ref(), "claim");
                let before = arrived();
                let given_up = async {
                    let polls = Polls::new(queue.claim(leased(60_000).max(5).wait(SOON)), left);
                    // One that waits for a hint is polled no more, and is given up where it is.
                    let claims = tokio::time::timeout(ms(40), polls).await.ok().flatten();
                    for claim in claims.into_iter().flatten().flatten() {
                        claim.put_back(Duration::ZERO).await.unwrap();
                    }
                };
                let counted = proxy.count("claim");
                runtime().block_on(given_up);
                let what = format!("{fault:?}, {} tasks, after {left} polls", tasks.len());
                if proxy.count("claim") > counted {
                    // The late copy reaches the server after its own clean-up did.
                    eventually(SOON, || before.is_none() || arrived() > before);
                }
                assert_untouched(&truth, &probe, tasks, &what);
            }
        }
    }
}

on_both_faces! {
    /// Given up as soon as the request has arrived.
    fn cancelled_claim_leaves_nothing(face) {
        let probe = Probe::open(&shared().url());
        for fault in faults() {
            let proxy = Proxy::start(shared());
            let name = unique("cancelled");
            let truth = open(Face::Blocking, &shared().url()).queue(&name);
            if let Some(fault) = &fault {
                proxy.fault("claim", 1, fault.clone());
            }
            let cancel = Cancel::start(face, &proxy.url(), &name);
            eventually(SOON, || proxy.count("claim") > 0);
            cancel.finish();
            assert_untouched(&truth, &probe, &[], &format!("{fault:?}"));
            // Nothing of it takes what comes later.
            put(&truth, &["a"]);
            let claim = await_one(&truth, SOON);
            assert_eq!(claim.attempt(), 1, "{fault:?}");
            claim.ack().unwrap();
        }
    }
}

on_shared_stores! {
    /// The same on every store, while waiting and nothing is wrong.
    fn cancelled_claim_while_waiting(bench) {
        let truth = bench.client().queue("q");
        let cancel = Cancel::start(bench.face, bench.url(), "q");
        let probe = bench.probe();
        probe.wait_for_idle("q", 1);
        let has_ended = cancel.finish();
        assert!(has_ended < ms(50) + crate::SLACK, "{has_ended:?}");
        assert_untouched(&truth, &probe, &[], "waiting");
    }
}

/// A worker is dropped while a verdict of its is on the way: with the next claim (one hand), or alone, since the claim for
/// the other hand waits (two).
#[test]
fn a_worker_dropped_in_mid_verdict_settles_nevertheless() {
    for fault in faults() {
        for (hands, verb) in [(1, "claim"), (2, "settle")] {
            let proxy = Proxy::start(shared());
            let name = unique("dropped");
            let truth = open(Face::Blocking, &shared().url()).queue(&name);
            put(&truth, &["a"]);
            let client = runtime().block_on(Client::builder(&proxy.url()).timeout(ms(500)).open()).unwrap();
            let probe = Probe::open(&shared().url());
            runtime().block_on(async {
                let (begun, gate) =
                    (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
                let (begin, wait) = (Arc::clone(&begun), Arc::clone(&gate));
                let handler = move |_claim| {
                    let (begin, wait) = (Arc::clone(&begin), Arc::clone(&wait));
                    async move {
                        begin.notify_one();
                        wait.notified().await;
                        Ok::<_, String>(())
                    }
                };
                let worker = Worker::new(client.queue(&name), handler).concurrency(hands).lease(6 * SOON);
                let running = tokio::spawn(worker.run());
                begun.notified().await;
                if hands == 2 {
                    tokio::task::block_in_place(|| probe.wait_for_idle(&name, 1));
                }
                if let Some(fault) = &fault {
                    proxy.fault(verb, 1, fault.clone());
                }
                let before = proxy.count(verb);
                gate.notify_one();
                tokio::task::block_in_place(|| eventually(SOON, || proxy.count(verb) > before));
                running.abort();
            });
            let what = format!("{fault:?}, with {hands} hands");
            let is_settled = holds_within(SOON, || census(&truth) == [0; 4]);
            assert!(is_settled, "{what}: {:?}", census(&truth));
        }
    }
}

/// A claim that waits and will be given up; what it gets it puts back.
pub(crate) struct Cancel {
    stop: Arc<AtomicBool>,
    wake: Arc<tokio::sync::Notify>,
    ended: stanchion_tests::wait::Task<()>,
}

impl Cancel {
    pub(crate) fn start(face: Face, url: &str, name: &str) -> Self {
        let (stop, wake) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
        let (url, name) = (url.to_owned(), name.to_owned());
        let (stopped, woken) = (Arc::clone(&stop), Arc::clone(&wake));
        let options = || leased(60_000).wait(6 * SOON);
        let ended = task(move || match face {
            Face::Blocking => {
                let client = blocking::Client::open(&url).unwrap();
                let mut turn = || match stopped.load(Ordering::SeqCst) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                match client.queue(&name).claim_while(options(), &mut turn) {
                    Ok(claims) => claims.iter().for_each(|claim| claim.put_back(Duration::ZERO).unwrap()),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
                }
                // What an abandoned call leaves undone is done by the client's keeper.
                drop(client);
            }
            Face::Async => runtime().block_on(async {
                let client = Client::open(&url).await.unwrap();
                let queue = client.queue(&name);
                tokio::select! {
                    biased;
                    () = woken.notified() => {}
                    claims = queue.claim(options()) => {
                        for claim in claims.unwrap() {
                            claim.put_back(Duration::ZERO).await.unwrap();
                        }
                    }
                }
            }),
        });
        Self { stop, wake, ended }
    }

    /// Gives the claim up; how long it took to return, as far as it could run.
    pub(crate) fn finish(self) -> Duration {
        let begun = std::time::Instant::now();
        self.stop.store(true, Ordering::SeqCst);
        self.wake.notify_one();
        self.ended.join();
        ran_since(begun)
    }
}
