//! Spans and events for `tracing`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, mpsc};

use stanchion::blocking::{Taken, Worker};
use stanchion::{ClaimOptions, LockOptions, Task};
use stanchion_tests::faces::AnyLease;
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, task};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::{ms, secs};

type Fields = BTreeMap<&'static str, String>;

/// Collects what it hears: spans when they end, events at once.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(&'static str, Fields)>>>);

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Reader(&mut fields));
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(&mut Reader(span.extensions_mut().get_mut().unwrap()));
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "stanchion" {
            let mut fields = Fields::new();
            event.record(&mut Reader(&mut fields));
            self.0.lock().unwrap().push(("event", fields));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let fields = span.extensions_mut().remove().unwrap();
        self.0.lock().unwrap().push((span.name(), fields));
    }
}

/// Asks the lease when its loss is told, as a subscriber may that shows what else is held.
struct Asks(Arc<AnyLease>);

impl<S: Subscriber> Layer<S> for Asks {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::WARN {
            assert!(!self.0.is_valid() && self.0.remaining().is_zero());
        }
    }
}

/// Runs it while the subscriber listens to this thread. It must not be the only one: of a single one a callsite takes no
/// note that another thread, which has none, meets first.
pub(crate) fn listen<T>(subscriber: impl Subscriber + Send + Sync + 'static, work: impl FnOnce() -> T) -> T {
    let _another = Dispatch::new(tracing_subscriber::registry());
    tracing::subscriber::with_default(subscriber, work)
}

/// What was heard while `work` ran on this thread.
fn heard(work: impl FnOnce()) -> Vec<(&'static str, Fields)> {
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    listen(subscriber, work);
    let mut heard = collector.0.lock().unwrap();
    std::mem::take(&mut *heard)
}

/// Operation, name, kind and outcome of each span.
fn operations(heard: &[(&'static str, Fields)]) -> Vec<String> {
    let spans = heard.iter().filter(|(name, _)| *name == "stanchion");
    let field = |fields: &Fields, name| fields.get(name).cloned().unwrap_or_default();
    spans
        .map(|(_, fields)| ["operation", "name", "kind", "outcome"].map(|name| field(fields, name)).join(" "))
        .collect()
}

on_every_store! {
    fn every_operation_is_a_span(bench) {
        let (client, other) = (bench.client(), bench.client());
        let mut secrets = Vec::new();
        let heard = heard(|| {
            let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
            secrets.push(lease.token().as_str().to_owned());
            assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
            client.lock("a").acquire(LockOptions::new().wait(ms(60))).unwrap_err();
            lease.extend(secs(60)).unwrap();
            lease.release().unwrap();
            client.semaphore("s", 3).acquire(LockOptions::new()).unwrap().release().unwrap();
            let queue = client.queue("q");
            queue.enqueue(Task::new("t").payload("c4n4ry-payload")).unwrap();
            let claim = queue.claim(ClaimOptions::new()).unwrap().remove(0);
            secrets.push(claim.receipt().to_string());
            claim.ack().unwrap();
            assert!(queue.claim(ClaimOptions::new()).unwrap().is_empty());
        });
        assert_eq!(operations(&heard), [
            "acquire a lock granted", "acquire a lock busy", "acquire a lock LockTimeout", "extend a lock ok",
            "release a lock ok", "acquire s semaphore granted", "release s semaphore ok", "enqueue q queue ok",
            "claim q queue claimed", "settle q queue ok", "claim q queue empty",
        ]);
        let text = format!("{heard:?}");
        secrets.push("c4n4ry-payload".into());
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
        drop(other);
    }

    fn a_subscriber_that_asks_the_lease_does_not_wait_for_itself(bench) {
        let lease = Arc::new(bench.client().lock("a").acquire(LockOptions::new()).unwrap());
        bench.client().lock("a").break_lease().unwrap();
        let asks = Asks(Arc::clone(&lease));
        let extending = task(move || {
            let subscriber = tracing_subscriber::registry().with(asks);
            listen(subscriber, || lease.extend(secs(60)).unwrap_err());
        });
        extending.join();
    }

    fn a_loss_is_an_event(bench) {
        let (client, other) = (bench.client(), bench.client());
        let heard = heard(|| {
            let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
            other.lock("a").break_lease().unwrap();
            lease.extend(secs(60)).unwrap_err();
        });
        let events: Vec<_> = heard.iter().filter(|(name, _)| *name == "event").map(|(_, fields)| fields).collect();
        assert_eq!(events.len(), 1, "{heard:?}");
        assert_eq!((&*events[0]["reason"], &*events[0]["name"], &*events[0]["kind"]), ("broken", "a", "lock"));
        assert_eq!(events[0]["message"], "the lease was lost");
    }
}

#[test]
fn the_work_of_a_hosts_hands_is_a_span() {
    let client = stanchion::blocking::Client::open("memory:").unwrap();
    let queue = client.queue("q");
    for id in ["done", "failed", "lost", "interrupted"] {
        queue.enqueue(Task::new(id)).unwrap();
    }
    let (direction, hands) = Worker::hosted(queue.clone()).concurrency(4).open().unwrap();
    let (stopper, (send, ended)) = (direction.stopper(), mpsc::channel());
    direction.start(move |result| send.send(result.is_ok()).unwrap()).unwrap();
    let next = || {
        let mut waited = false;
        loop {
            match hands.take(waited) {
                Taken::Task(claim) => return claim,
                Taken::Nothing => hands.wait_for(SOON),
                Taken::Over => panic!("there are more tasks"),
            }
            waited = true;
        }
    };
    let heard = heard(|| {
        let claims: Vec<_> = (0..4).map(|_| next()).collect();
        for claim in &claims {
            let said = if claim.id() == "failed" { Err("no".to_owned()) } else { Ok(()) };
            if claim.id() == "lost" {
                queue.remove("lost", None).unwrap();
                claim.extend(secs(60)).unwrap_err();
            }
            if claim.id() != "interrupted" {
                drop(hands.done(claim.receipt(), said));
            }
        }
        stopper.stop();
        hands.interrupt();
    });
    let work = heard.iter().filter(|(name, _)| *name == "stanchion.work");
    let work: Vec<_> = work
        .map(|(_, fields)| ["name", "kind", "id", "attempt", "outcome"].map(|name| &*fields[name]).join(" "))
        .collect();
    assert_eq!(
        work,
        [
            "q task done 1 returned",
            "q task failed 1 failed",
            "q task lost 1 lost",
            "q task interrupted 1 interrupted",
        ]
    );
    assert!(ended.recv_timeout(SOON).unwrap());
}
