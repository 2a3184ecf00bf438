//! Workers that are stopped or dropped, and handlers that do not end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use stanchion::{ClaimOptions, LossReason, OnDuplicate, Rescheduled, Task, TaskState, blocking};
use stanchion_tests::faces::{Face, Stop};
use stanchion_tests::stores::{Bench, Kind};
use stanchion_tests::wait::{SOON, eventually, ran_since, task, within};
use stanchion_tests::{async_on_every_store, on_every_store};

use crate::queue_support::{census, put};
use crate::queue_worker::{counts, lines, start};
use crate::{ms, secs};

/// A handler's gate, which opens when the sender is dropped.
fn gate() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (open, gate) = mpsc::channel();
    (open, Arc::new(Mutex::new(gate)))
}

/// For what only threads do.
macro_rules! on_threads {
    ($(fn $name:ident($bench:ident) $body:block)+) => {$(
        mod $name {
            use super::*;
            fn run($bench: Bench) $body
            #[test]
            fn memory() {
                run(Bench::new(Kind::Memory, Face::Blocking));
            }
            #[test]
            fn sqlite() {
                run(Bench::new(Kind::Sqlite, Face::Blocking));
            }
            #[test]
            fn redis() {
                run(Bench::new(Kind::Redis, Face::Blocking));
            }
        }
    )+};
}

on_every_store! {
    fn a_stop_gives_grace_and_then_the_tasks_go_back_uncounted(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a", "b"]);
        let (send, begun) = mpsc::channel();
        let stop = Stop::default();
        let worker = queue.worker(&stop, move |claim| {
            send.send(Instant::now()).unwrap();
            eventually(SOON, || !claim.is_valid());
            // On the async face nobody waits for this closure any more.
            assert!(matches!(claim.loss(), None | Some(LossReason::Stopped)));
            Err("told to end".into())
        });
        let working = start(worker.lease(secs(60)).grace(ms(300)));
        begun.recv_timeout(SOON).unwrap();
        let stopped = Instant::now();
        stop.stop();
        assert_eq!(working.join(), [0; 4]);
        assert!(stopped.elapsed() >= ms(300), "no grace: {:?}", stopped.elapsed());
        assert_eq!(census(&queue), [0, 2, 0, 0]);
        assert_eq!((queue.task("a").attempts, queue.task("b").attempts), (0, 0));
    }

    fn what_is_done_within_the_grace_is_acked(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        let (send, begun) = mpsc::channel();
        let (open, gate) = gate();
        let stop = Stop::default();
        let worker = queue.worker(&stop, move |claim| {
            send.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            if claim.is_valid() { Ok(()) } else { Err("no grace".into()) }
        });
        let working = start(worker.grace(secs(60)));
        begun.recv_timeout(SOON).unwrap();
        stop.stop();
        drop(open);
        assert_eq!(working.join(), [1, 0, 0, 0]);
        assert_eq!(census(&queue), [0; 4]);
    }
}

on_threads! {
    fn a_hung_handler_costs_one_hand_and_is_told_of(bench) {
        let client = blocking::Client::open(bench.url()).unwrap();
        let queue = client.queue("q");
        queue.enqueue(Task::new("hang")).unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let (open, gate) = gate();
        let (send, told) = mpsc::channel();
        let (count, hook) = (Arc::clone(&runs), lines(send));
        let worker = blocking::Worker::new(queue.clone(), move |claim: &blocking::Claim| {
            if claim.id() == "hang" {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = gate.lock().unwrap().recv();
            }
            Ok::<(), String>(())
        });
        let worker = worker.concurrency(2).lease(secs(1)).max_run(secs(1)).on_event(move |event| hook(&event));
        let stopper = worker.stopper();
        let working = task(move || counts(worker.run().unwrap()));
        let next = || told.recv_timeout(SOON).unwrap();
        assert_eq!(next(), "started hang 1");
        assert_eq!(next(), "lost hang 1");
        // Another gets it, although this worker asks for tasks all the time.
        let other = blocking::Client::open(bench.url()).unwrap().queue("q");
        let waits = ClaimOptions::new().wait(SOON);
        let taken = other.claim(waits).unwrap();
        assert_eq!((taken[0].id(), taken[0].attempt()), ("hang", 2));
        taken[0].ack().unwrap();
        queue.enqueue(Task::new("b")).unwrap();
        let mut lines: Vec<String> = (0..3).map(|_| next()).collect();
        lines.sort();
        assert_eq!(lines, ["completed b 1", "started b 1", "stuck hang 1, 1 free"]);
        drop(open);
        stopper.stop();
        assert_eq!(working.join(), [1, 0, 0, 1]);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    fn a_worker_whose_hands_all_hang_says_so(bench) {
        let client = blocking::Client::open(bench.url()).unwrap();
        let queue = client.queue("q");
        queue.enqueue_many([Task::new("a"), Task::new("b")]).unwrap();
        let (open, gate) = gate();
        let (send, told) = mpsc::channel();
        let hook = lines(send);
        let worker = blocking::Worker::new(queue, move |_: &blocking::Claim| {
            // One of them holds the mutex, the other waits for it.
            let _ = gate.lock().unwrap().recv();
            Ok::<(), String>(())
        });
        let worker = worker.concurrency(2).lease(secs(1)).max_run(secs(1)).on_event(move |event| hook(&event));
        let stopper = worker.stopper();
        let working = task(move || counts(worker.run().unwrap()));
        let until = Instant::now() + SOON;
        loop {
            let line = told.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap();
            assert!(!line.ends_with(" 2"), "it was begun again: {line}");
            if line.ends_with("0 free") {
                break;
            }
        }
        // First: with free hands it would take the tasks again.
        stopper.stop();
        drop(open);
        assert_eq!(working.join(), [0, 0, 0, 2]);
    }

    fn a_handler_that_ignores_the_stop_is_left_behind(bench) {
        let client = blocking::Client::open(bench.url()).unwrap();
        let queue = client.queue("q");
        queue.enqueue_many([Task::new("a"), Task::new("b")]).unwrap();
        let (open, gate) = gate();
        let (send, begun) = mpsc::channel();
        let worker = blocking::Worker::new(queue.clone(), move |_: &blocking::Claim| {
            send.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            Ok::<(), String>(())
        });
        let worker = worker.lease(secs(60));
        let stopper = worker.stopper();
        let working = task(move || counts(worker.run().unwrap()));
        begun.recv_timeout(SOON).unwrap();
        stopper.stop();
        let hurried = Instant::now();
        stopper.hurry();
        working.join();
        assert!(hurried.elapsed() >= secs(2) && ran_since(hurried) < secs(8), "{:?}", hurried.elapsed());
        // It may still be at work: nobody gets it before its lease would have ended, and then no attempt is counted.
        let left: Vec<_> = queue.claim(ClaimOptions::new().max(10)).unwrap();
        assert_eq!(left.iter().map(blocking::Claim::id).collect::<Vec<_>>(), ["b"]);
        let rests = queue.get("a").unwrap().unwrap();
        assert_eq!((rests.state, rests.attempts), (TaskState::Scheduled, 0));
        queue.enqueue(Task::new("a").on_duplicate(OnDuplicate::Replace)).unwrap();
        assert!(queue.claim(ClaimOptions::new().max(10)).unwrap().is_empty(), "by nobody's enqueue");
        assert!(matches!(queue.reschedule("a", SystemTime::now()).unwrap(), Rescheduled::Moved(_)));
        assert_eq!(queue.claim(ClaimOptions::new().wait(SOON)).unwrap()[0].attempt(), 1);
        drop(open);
    }
}

async_on_every_store! {
    async fn a_dropped_worker_drops_its_handlers_and_their_tasks_go_back(bench) {
        struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                let _ = self.0.take().map(|send| send.send(()));
            }
        }
        let client = stanchion::Client::open(bench.url()).await.unwrap();
        let queue = client.queue("q");
        queue.enqueue_many([Task::new("a"), Task::new("b")]).await.unwrap();
        let (send, dropped) = tokio::sync::oneshot::channel();
        let guard = Mutex::new(Some(Dropped(Some(send))));
        let (begin, begun) = tokio::sync::oneshot::channel();
        let begin = Mutex::new(Some(begin));
        let handler = move |_claim| {
            let guard = guard.lock().unwrap().take();
            let _ = begin.lock().unwrap().take().map(|begin| begin.send(()));
            async move {
                let _guard = guard;
                std::future::pending::<Result<(), String>>().await
            }
        };
        let worker = stanchion::Worker::new(queue.clone(), handler).lease(secs(60));
        let running = tokio::spawn(worker.run());
        within(SOON, begun).await.unwrap();
        running.abort();
        within(SOON, dropped).await.unwrap();
        let until = Instant::now() + SOON;
        loop {
            let task = queue.get("a").await.unwrap().unwrap();
            if task.state == TaskState::Ready {
                assert_eq!(task.attempts, 0);
                break;
            }
            assert!(Instant::now() < until, "{task:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

on_threads! {
    fn what_a_handler_said_counts_though_the_worker_is_dropped_before_it_hears(bench) {
        // On one thread, so that the worker is dropped before it hears that the handler is done.
        let url = bench.url().to_owned();
        for (id, said, state) in [("a", Ok(()), None), ("b", Err("no"), Some(TaskState::Scheduled))] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let queue = stanchion::Client::open(&url).await.unwrap().queue("q");
                queue.enqueue(Task::new(id)).await.unwrap();
                let (send, done) = tokio::sync::oneshot::channel();
                let send = Mutex::new(Some(send));
                let handler = move |_claim| {
                    let _ = send.lock().unwrap().take().map(|send| send.send(()));
                    async move { said }
                };
                let worker = stanchion::Worker::new(queue.clone(), handler).lease(secs(60));
                tokio::select! {
                    biased;
                    heard = done => heard.unwrap(),
                    ended = worker.run() => panic!("{ended:?}"),
                }
                let until = Instant::now() + SOON;
                loop {
                    let task = queue.get(id).await.unwrap();
                    if task.as_ref().is_none_or(|task| task.state != TaskState::Claimed) {
                        assert_eq!(task.as_ref().map(|task| task.state), state, "{task:?}");
                        assert_eq!(task.map(|task| task.reason).as_deref(), said.err());
                        break;
                    }
                    assert!(Instant::now() < until, "{task:?}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        }
    }
}
