//! Workers: every task is handled, and every end of a handler is told to the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use stanchion::{ErrorKind, Retry, Task, TaskState, WorkerEvent, WorkerReport};
use stanchion_tests::faces::{AnyClaim, AnyQueue, AnyWorker, Stop};
use stanchion_tests::wait::{self, SOON, eventually, ran_since, task};
use stanchion_tests::{async_on_every_store, on_every_store};

use crate::queue_support::{assert_nothing, await_one, census, kind, plain, put};
use crate::{ms, secs};

fn ok(_claim: AnyClaim) -> Result<(), String> {
    Ok(())
}

/// Completed, failed, dead, lost.
pub(crate) fn counts(report: WorkerReport) -> [u64; 4] {
    [report.completed, report.failed, report.dead, report.lost]
}

pub(crate) fn start(worker: AnyWorker) -> wait::Task<[u64; 4]> {
    task(move || counts(worker.run().expect("the worker's report")))
}

/// Sends what a worker tells, as one line per event.
pub(crate) fn lines(send: Sender<String>) -> impl Fn(&WorkerEvent<'_>) + Send + Sync {
    let send = Mutex::new(send);
    move |event| {
        let line = match event {
            WorkerEvent::Started { id, attempt } => format!("started {id} {attempt}"),
            WorkerEvent::Completed { id, attempt } => format!("completed {id} {attempt}"),
            WorkerEvent::Failed { id, attempt, reason } => format!("failed {id} {attempt}: {reason}"),
            WorkerEvent::Dead { id, attempt, reason } => format!("dead {id} {attempt}: {reason}"),
            WorkerEvent::Lost { id, attempt } => format!("lost {id} {attempt}"),
            WorkerEvent::Stuck { id, attempt, free } => format!("stuck {id} {attempt}, {free} free"),
            // It has a test of its own: when there is nothing for a moment is up to the store's speed.
            WorkerEvent::Empty => return,
            WorkerEvent::SlotsMissed { schedule, missed, fired, late } => {
                format!("{schedule} missed {missed}, fired {fired}, late by {late:?}")
            }
            WorkerEvent::StoreFailed { error } => format!("store failed: {error}"),
            WorkerEvent::StoreBack { .. } => "store back".into(),
            _ => "unknown".into(),
        };
        let _ = send.lock().unwrap().send(line);
    }
}

on_every_store! {
    fn a_worker_empties_a_queue_and_ends(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..57).map(|number| plain(&format!("t{number}")))).unwrap();
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let record = Arc::clone(&seen);
        let worker = queue.worker(&Stop::default(), move |claim| {
            assert_eq!(claim.payload(), claim.id().as_bytes());
            *record.lock().unwrap().entry(claim.id().to_owned()).or_insert(0) += 1;
            Ok(())
        });
        assert_eq!(start(worker.concurrency(4).until_empty()).join_within(secs(30)), [57, 0, 0, 0]);
        let seen = seen.lock().unwrap();
        assert_eq!((seen.len(), seen.values().all(|times| *times == 1)), (57, true));
        assert_eq!((census(&queue), queue.stats().unwrap().acked), ([0; 4], 57));
    }

    fn an_empty_queue_ends_a_worker_that_empties(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("later").delay(secs(600))).unwrap();
        assert_eq!(start(queue.worker(&Stop::default(), ok).until_empty()).join(), [0; 4]);
        assert_eq!(census(&queue), [1, 0, 0, 0], "what is due later stays");
    }

    fn until_empty_waits_for_what_others_have_claimed(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let held = crate::queue_support::take(&queue);
        let (send, told) = mpsc::channel();
        let worker = queue.worker(&Stop::default(), ok).until_empty().on_event(lines(send));
        let working = start(worker);
        put(&queue, &["b"]);
        assert_eq!(told.recv_timeout(SOON).unwrap(), "started b 1");
        assert_eq!(told.recv_timeout(SOON).unwrap(), "completed b 1");
        held.nack_now("take it").unwrap();
        assert_eq!(working.join(), [2, 0, 0, 0]);
        assert_eq!(census(&queue), [0; 4]);
    }

    fn so_many_run_at_once_and_no_more(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..9).map(|number| plain(&format!("t{number}")))).unwrap();
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Passes only when three are inside.
        let together = Arc::new(Barrier::new(3));
        let highest = Arc::clone(&most);
        let worker = queue.worker(&Stop::default(), move |_| {
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            highest.fetch_max(now, Ordering::SeqCst);
            together.wait();
            inside.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        });
        assert_eq!(start(worker.concurrency(3).until_empty()).join_within(secs(30)), [9, 0, 0, 0]);
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    fn a_worker_tells_when_there_is_nothing_left(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..7).map(|number| plain(&format!("t{number}")))).unwrap();
        let (send, told) = mpsc::channel();
        let (send, stop) = (Mutex::new(send), Stop::default());
        let asked = queue.clone();
        let worker = queue.worker(&stop, |_| Ok(())).on_event(move |event| {
            if matches!(event, WorkerEvent::Empty) {
                let _ = send.lock().unwrap().send(());
            }
        });
        let working = start(worker.concurrency(3));
        told.recv_timeout(SOON).unwrap();
        assert_eq!(census(&asked), [0; 4], "told too early");
        put(&asked, &["one more"]);
        told.recv_timeout(SOON).unwrap();
        stop.stop();
        assert_eq!(working.join(), [8, 0, 0, 0]);
        assert!(told.try_recv().is_err(), "told without any work in between");
    }

    fn a_failing_handler_is_tried_again_and_dead_in_the_end(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(2)).unwrap();
        let (send, told) = mpsc::channel();
        let stop = Stop::default();
        let worker = queue.worker(&stop, |_| Err("no paper".into())).on_event(lines(send));
        let working = start(worker);
        let told: Vec<String> = (0..5).map(|_| told.recv_timeout(SOON).unwrap()).collect();
        assert_eq!(told, [
            "started a 1", "failed a 1: no paper", "started a 2", "failed a 2: no paper", "dead a 2: no paper",
        ]);
        stop.stop();
        assert_eq!(working.join(), [0, 2, 1, 0]);
        let dead = queue.task("a");
        assert_eq!((dead.state, dead.attempts, dead.reason.as_str()), (TaskState::Dead, 2, "no paper"));
        assert_eq!(dead.payload, b"a");
    }

    fn a_panic_is_a_failure_and_the_worker_goes_on(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("bad").max_attempts(1)).unwrap();
        put(&queue, &["good"]);
        let worker = queue.worker(&Stop::default(), |claim| match claim.id() {
            "bad" => panic!("expected in this test"),
            _ => Ok(()),
        });
        assert_eq!(start(worker.until_empty()).join(), [1, 1, 1, 0]);
        assert_eq!(queue.task("bad").reason, "the handler panicked: expected in this test");
        assert_eq!(census(&queue), [0, 0, 0, 1]);
    }

    fn what_a_handler_settles_itself_is_left_alone(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["ack", "nack", "bury", "back", "ack and fail"]);
        let backs = AtomicUsize::new(0);
        let (send, told) = mpsc::channel();
        let worker = queue.worker(&Stop::default(), move |claim| {
            match claim.id() {
                "ack" => claim.ack().unwrap(),
                "nack" => claim.nack(Retry::After(secs(600)), "later").unwrap(),
                "bury" => claim.bury("dead").unwrap(),
                "back" if backs.fetch_add(1, Ordering::SeqCst) == 0 => claim.put_back().unwrap(),
                "back" => {}
                _ => {
                    claim.ack().unwrap();
                    return Err("too late to fail".into());
                }
            }
            Ok(())
        });
        let report = start(worker.until_empty().on_event(lines(send))).join();
        assert_eq!(report, [3, 2, 1, 0], "{:?}", told.try_iter().collect::<Vec<_>>());
        assert_eq!(census(&queue), [1, 0, 0, 1]);
        assert_eq!((queue.task("nack").attempts, queue.task("nack").reason.as_str()), (1, "later"));
        assert_eq!(queue.task("bury").reason, "dead");
        let stats = queue.stats().unwrap();
        assert_eq!((stats.acked, stats.died), (3, 1));
    }

    fn a_handler_that_runs_long_keeps_its_task(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let worker = queue.worker(&Stop::default(), move |claim| {
            count.fetch_add(1, Ordering::SeqCst);
            let begun = Instant::now();
            eventually(SOON, || begun.elapsed() > ms(3_400) && claim.is_valid());
            Ok(())
        });
        let working = start(worker.lease(ms(2_400)).until_empty());
        eventually(SOON, || runs.load(Ordering::SeqCst) == 1);
        assert_nothing(&queue);
        assert_eq!(working.join(), [1, 0, 0, 0]);
        assert_eq!(runs.load(Ordering::SeqCst), 1, "it was delivered again");
    }

    fn max_run_ends_an_endless_handler(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue(plain("a").max_attempts(1)).unwrap();
        let stop = Stop::default();
        let (send, told) = mpsc::channel();
        let worker = queue.worker(&stop, |claim| {
            // A handler on a thread has to look itself.
            eventually(SOON, || !claim.is_valid());
            Err("too long".into())
        });
        let working = start(worker.lease(ms(150)).max_run(ms(400)).on_event(lines(send)));
        assert_eq!(told.recv_timeout(SOON).unwrap(), "started a 1");
        let ended = told.recv_timeout(SOON).unwrap();
        assert!(ended == "lost a 1" || ended == "failed a 1: too long", "{ended}");
        eventually(SOON, || {
            let _ = queue.claim(crate::queue_support::up_to(1)).unwrap();
            queue.task("a").state == TaskState::Dead
        });
        assert_eq!(queue.task("a").attempts, 1);
        stop.stop();
        working.join();
    }

    fn a_task_removed_under_its_handler_is_lost_to_it(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let stop = Stop::default();
        let (send, told) = mpsc::channel();
        let worker = queue.worker(&stop, |claim| {
            eventually(SOON, || claim.loss().is_some());
            Ok(())
        });
        let working = start(worker.lease(secs(3)).on_event(lines(send)));
        assert_eq!(told.recv_timeout(SOON).unwrap(), "started a 1");
        queue.remove("a", None).unwrap();
        assert_eq!(told.recv_timeout(SOON).unwrap(), "lost a 1");
        stop.stop();
        assert_eq!(working.join(), [0, 0, 0, 1]);
        assert_eq!(census(&queue), [0; 4]);
    }

    fn an_idle_worker_starts_at_once_when_a_task_comes(bench) {
        let queue = bench.client().queue("q");
        let stop = Stop::default();
        let (send, told) = mpsc::channel();
        let working = start(queue.worker(&stop, ok).on_event(lines(send)));
        let probe = bench.probe();
        for round in 0..3 {
            probe.wait_for_idle("q", 1);
            let begun = Instant::now();
            let id = format!("t{round}");
            put(&queue, &[&id]);
            assert_eq!(told.recv_timeout(SOON).unwrap(), format!("started {id} 1"));
            assert!(ran_since(begun) < ms(500), "started after {:?}", ran_since(begun));
            assert_eq!(told.recv_timeout(SOON).unwrap(), format!("completed {id} 1"));
            eventually(SOON, || queue.get(&id).unwrap().is_none());
        }
        stop.stop();
        assert_eq!(working.join(), [3, 0, 0, 0]);
        // Somebody else takes it out of the idle set.
        probe.wait_for_idle("q", 0);
    }

    fn a_stopped_worker_finishes_what_it_has_and_takes_nothing_more(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b", "c"]);
        let stop = Stop::default();
        let (enter, entered) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let worker = queue.worker(&stop, move |claim| {
            enter.send(claim.id().to_owned()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            Ok(())
        });
        let working = start(worker.concurrency(2));
        let mut held = [entered.recv_timeout(SOON).unwrap(), entered.recv_timeout(SOON).unwrap()];
        held.sort();
        assert_eq!(held, ["a", "b"]);
        stop.stop();
        assert!(!working.has_ended());
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert_eq!(working.join(), [2, 0, 0, 0]);
        assert_eq!(census(&queue), [0, 1, 0, 0]);
        assert_eq!(queue.task("c").attempts, 0);
    }

    fn an_idle_worker_stops_at_once(bench) {
        let queue = bench.client().queue("q");
        let stop = Stop::default();
        let working = start(queue.worker(&stop, ok));
        let probe = bench.probe();
        probe.wait_for_idle("q", 1);
        let begun = Instant::now();
        stop.stop();
        assert_eq!(working.join(), [0; 4]);
        assert!(ran_since(begun) < ms(500), "it took {:?}", ran_since(begun));
        eventually(SOON, || probe.idle("q") == 0);
        put(&queue, &["a"]);
        let begun = Instant::now();
        await_one(&queue).ack().unwrap();
        assert!(ran_since(begun) < ms(500));
    }

    fn workers_share_a_queue(bench) {
        let queue = bench.client().queue("q");
        queue.enqueue_many((0..90).map(|number| plain(&format!("t{number}")).max_attempts(1))).unwrap();
        let working: Vec<_> = (0..3).map(|_| {
            let queue: AnyQueue = bench.client().queue("q");
            start(queue.worker(&Stop::default(), |claim| match claim.attempt() {
                1 => Ok(()),
                other => Err(format!("attempt {other}")),
            }).concurrency(3).until_empty())
        }).collect();
        let reports: Vec<[u64; 4]> = working.into_iter().map(|worker| worker.join_within(secs(30))).collect();
        assert_eq!(reports.iter().map(|report| report[0]).sum::<u64>(), 90, "{reports:?}");
        assert_eq!((census(&queue), queue.stats().unwrap().acked), ([0; 4], 90));
    }

    fn a_paused_queue_keeps_its_workers_idle(bench) {
        let queue = bench.client().queue("q");
        queue.pause().unwrap();
        let stop = Stop::default();
        let (send, told) = mpsc::channel();
        let working = start(queue.worker(&stop, ok).on_event(lines(send)));
        bench.probe().wait_for_idle("q", 1);
        put(&queue, &["a"]);
        assert!(told.recv_timeout(ms(100)).is_err());
        let begun = Instant::now();
        queue.resume().unwrap();
        assert_eq!(told.recv_timeout(SOON).unwrap(), "started a 1");
        assert!(ran_since(begun) < ms(500), "started after {:?}", ran_since(begun));
        stop.stop();
        assert_eq!(working.join()[0], 1);
    }

    fn a_worker_with_bad_options_does_not_start(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let new = || queue.worker(&Stop::default(), |_| panic!("it started"));
        for worker in [
            new().concurrency(0), new().concurrency(1_001), new().lease(ms(0)), new().lease(Duration::MAX),
            new().lease(secs(10)).max_run(secs(5)), new().max_run(Duration::MAX), new().grace(Duration::MAX),
        ] {
            assert_eq!(kind(worker.run()), ErrorKind::InvalidArgument);
        }
        let bad_name = bench.client().queue("a}{");
        assert_eq!(kind(bad_name.worker(&Stop::default(), ok).run()), ErrorKind::InvalidArgument);
        assert_eq!(census(&queue), [0, 1, 0, 0]);
    }
}

async_on_every_store! {
    /// Only the async face can end a handler from outside: it drops its future.
    async fn a_lost_tasks_handler_is_dropped(bench) {
        struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                let _ = self.0.take().map(|send| send.send(()));
            }
        }
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let queue = client.queue("q");
        queue.enqueue(Task::new("a").max_attempts(1)).await.unwrap();
        let (send, dropped) = tokio::sync::oneshot::channel();
        let guard = Mutex::new(Some(Dropped(Some(send))));
        let handler = move |_claim| {
            let guard = guard.lock().unwrap().take();
            async move {
                let _guard = guard;
                std::future::pending::<Result<(), String>>().await
            }
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let worker = stanchion::Worker::new(queue.clone(), handler).lease(ms(150)).max_run(ms(300));
        let running = tokio::spawn(worker.run_until(async move { drop(stopped.await) }));
        wait::within(SOON, dropped).await.unwrap();
        stop.send(()).unwrap();
        let report = wait::within(SOON, running).await.unwrap().unwrap();
        assert_eq!(counts(report), [0, 0, 0, 1]);
    }
}

/// The blocking worker's own way to be stopped.
#[test]
fn a_stopper_ends_a_blocking_worker() {
    let client = stanchion::blocking::Client::open("memory:").unwrap();
    let worker = stanchion::blocking::Worker::new(client.queue("q"), |_: &stanchion::blocking::Claim| {
        Ok::<(), String>(())
    });
    let stopper = worker.stopper();
    let working = task(move || worker.run().unwrap());
    stopper.clone().stop();
    assert_eq!(counts(working.join()), [0; 4]);
}
