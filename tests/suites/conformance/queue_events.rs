//! events: what happens to the tasks of a queue that keeps it.

use std::time::{Duration, SystemTime};

use stanchion::{DeadTasks, ErrorKind, EventPage, Happened, QueueConfig, Retry};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;
use stanchion_tests::wait::task;

use crate::queue_support::{kind, lapse, plain, put, take, take_for};
use crate::{ms, secs};

const NOW: Duration = Duration::ZERO;

fn watched(queue: &AnyQueue) -> u64 {
    queue.configure(QueueConfig::new().events(1_000)).unwrap();
    queue.events(None, NOW).unwrap().cursor
}

/// All after that, each in a few words.
fn told(queue: &AnyQueue, after: u64) -> Vec<String> {
    let page = queue.events(Some(after), NOW).unwrap();
    page.events.iter().map(|event| format!("{} {} {}", event.id, event.what.name(), event.attempt)).collect()
}

fn names(page: &EventPage) -> Vec<&'static str> {
    page.events.iter().map(|event| event.what.name()).collect()
}

on_every_store! {
    fn a_task_is_told_of_from_its_beginning_to_its_end(bench) {
        let queue = bench.client().queue("q");
        let before = SystemTime::now() - secs(60);
        let start = watched(&queue);
        let version = queue.enqueue(plain("a")).unwrap().version;
        take(&queue).nack(Retry::After(NOW), "no luck").unwrap();
        let claim = take(&queue);
        claim.progress(b"half").unwrap();
        claim.ack().unwrap();
        let expected = ["a added 0", "a started 1", "a failed 1", "a started 2", "a progress 2", "a done 2"];
        assert_eq!(told(&queue, start), expected);
        let events = queue.events(Some(start), NOW).unwrap().events;
        assert!(events.iter().all(|event| event.version == version && event.at > before), "{events:?}");
        assert!(events.iter().map(|event| event.number).eq(start + 1..=start + 6), "{events:?}");
        let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
        assert_eq!(reasons, ["no luck"]);
    }

    fn every_end_of_a_task_is_told(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["put_back", "buried", "lapsed", "cancelled", "removed"]);
        let start = watched(&queue);
        take(&queue).put_back().unwrap();
        queue.remove("put_back", None).unwrap();
        take(&queue).bury("bad").unwrap();
        // A lease that is over when its answer comes is put back, which is told: it outlasts a busy machine.
        let _held = take_for(&queue, ms(1_500));
        lapse(&queue, "lapsed");
        queue.remove("lapsed", None).unwrap();
        queue.cancel("cancelled").unwrap();
        queue.remove("removed", None).unwrap();
        queue.kick(DeadTasks::oldest(1)).unwrap();
        let expected = [
            "put_back started 1", "put_back put_back 1", "put_back removed 0", "buried started 1", "buried dead 1",
            "lapsed started 1", "lapsed removed 1", "cancelled cancelled 0", "removed removed 0", "buried added 0",
        ];
        assert_eq!(told(&queue, start), expected);
    }

    fn who_waits_hears_of_what_happens(bench) {
        let queue = bench.client().queue("q");
        watched(&queue);
        let watcher = queue.clone();
        let (entered, hears) = std::sync::mpsc::channel();
        let waiting = task(move || {
            let cursor = watcher.events(None, NOW).unwrap().cursor;
            entered.send(()).unwrap();
            watcher.events(Some(cursor), secs(60)).unwrap()
        });
        hears.recv().unwrap();
        put(&queue, &["a"]);
        assert_eq!(names(&waiting.join()), ["added"]);
    }

    fn from_now_on_is_from_when_the_store_was_asked(bench) {
        let queue = bench.client().queue("q");
        watched(&queue);
        put(&queue, &["a"]);
        let page = queue.events(None, ms(30)).unwrap();
        assert_eq!((page.events.len(), page.missed), (0, false));
        put(&queue, &["b"]);
        assert_eq!(told(&queue, page.cursor), ["b added 0"]);
    }

    fn a_queue_keeps_no_events_unless_it_is_told_to(bench) {
        let queue = bench.client().queue("q");
        put(&queue, &["a"]);
        assert_eq!(queue.stats().unwrap().settings.events, 0);
        let error = queue.events(None, secs(60)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("configure"), "it says what to do: {error}");
        queue.configure(QueueConfig::new().events(100)).unwrap();
        assert_eq!(queue.stats().unwrap().settings.events, 100);
        let start = queue.events(None, NOW).unwrap().cursor;
        put(&queue, &["b"]);
        queue.configure(QueueConfig::new().events(0)).unwrap();
        assert_eq!(kind(queue.events(Some(start), NOW)), ErrorKind::Unsupported);
        // Those from before are not told for others.
        queue.configure(QueueConfig::new().events(100)).unwrap();
        put(&queue, &["c"]);
        let page = queue.events(Some(start), NOW).unwrap();
        assert_eq!((names(&page), page.missed, page.events[0].id.as_str()), (vec!["added"], true, "c"));
    }

    fn only_the_last_ones_are_kept_and_a_gap_is_told(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().events(50)).unwrap();
        let start = queue.events(None, NOW).unwrap().cursor;
        for round in 0..12 {
            put(&queue, &(0..50).map(|number| format!("t{round}-{number}")).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
        }
        let page = queue.events(Some(start), NOW).unwrap();
        // A store may drop whole chunks of a hundred only.
        assert!(page.missed && (50..=200).contains(&page.events.len()), "{} {}", page.missed, page.events.len());
        assert_eq!(page.cursor, start + 600);
        let oldest = queue.events(Some(0), NOW).unwrap();
        assert_eq!((oldest.events.len(), oldest.missed), (page.events.len(), false));
        assert_eq!(queue.events(Some(page.cursor), NOW).unwrap().events.len(), 0);
    }

    fn a_page_has_five_hundred_and_the_next_goes_on(bench) {
        let queue = bench.client().queue("q");
        let start = watched(&queue);
        let ids: Vec<String> = (0..620).map(|number| format!("t{number}")).collect();
        put(&queue, &ids.iter().map(String::as_str).collect::<Vec<_>>());
        let first = queue.events(Some(start), NOW).unwrap();
        let second = queue.events(Some(first.cursor), NOW).unwrap();
        assert_eq!((first.events.len(), second.events.len(), second.missed), (500, 120, false));
        let told: Vec<_> = first.events.into_iter().chain(second.events).map(|event| event.id).collect();
        assert_eq!(told, ids);
    }

    fn a_purge_leaves_the_events(bench) {
        let queue = bench.client().queue("q");
        let start = watched(&queue);
        put(&queue, &["a"]);
        queue.purge().unwrap();
        put(&queue, &["b"]);
        assert_eq!(told(&queue, start), ["a added 0", "b added 0"]);
    }

    fn bad_input_is_refused(bench) {
        let queue = bench.client().queue("q");
        let year = secs(365 * 24 * 3_600);
        assert_eq!(kind(queue.events(None, year + ms(1))), ErrorKind::InvalidArgument);
        assert_eq!(kind(queue.configure(QueueConfig::new().events(100_001))), ErrorKind::InvalidArgument);
        queue.configure(QueueConfig::new().events(100_000)).unwrap();
        assert_eq!(queue.events(Some(u64::MAX), NOW).unwrap().events.len(), 0);
        assert!(matches!(Happened::Done.name(), "done"));
    }
}
