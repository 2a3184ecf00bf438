//! Schedules on `memory:` with a clock that the test moves: years of slots.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use stanchion::{ClaimOptions, Missed, Schedule};
use stanchion_tests::faces::AnyQueue;

use crate::queue_support::{assert_nothing, take, up_to};
use crate::{ms, secs};

const HOUR: u64 = 3_600;

/// Everything that can be claimed, acked.
fn drain(queue: &AnyQueue) -> Vec<(String, SystemTime)> {
    let mut done = Vec::new();
    loop {
        let claims = queue.claim(ClaimOptions::new().lease(secs(60)).max(1_000)).unwrap();
        if claims.is_empty() {
            return done;
        }
        for claim in claims {
            done.push((claim.id().to_owned(), claim.due()));
            claim.ack().unwrap();
        }
    }
}

on_both_faces! {
    fn ten_years_of_slots_come_once_each_in_every_zone(fixture) {
        let (one, two) = (fixture.one.queue("q"), fixture.two.queue("q"));
        let mut schedules = Vec::new();
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"] {
            for when in ["0 2 * * *", "30 2 * * *", "every 36h"] {
                let schedule = Schedule::new(format!("{zone} {when}"), when).tz(zone).missed(Missed::All(1_000));
                one.schedule(schedule.clone()).unwrap();
                schedules.push((format!("{zone} {when}"), schedule));
            }
        }
        let begin = first_of(&one);
        let expected: BTreeSet<_> = schedules.iter().flat_map(|(id, schedule)| {
            slots_of(schedule, begin, begin + secs(3_650 * 24 * HOUR)).into_iter().map(|slot| (id.clone(), slot))
        }).collect();
        let mut seen = BTreeSet::new();
        // Now one looks, now the other, each week or so.
        for week in 0..522u64 {
            let step = if week == 521 { secs(3_650 * 24 * HOUR) - secs(521 * 7 * 24 * HOUR) } else { secs(7 * 24 * HOUR) };
            fixture.clock.advance(step);
            for (id, due) in drain(if week % 2 == 0 { &one } else { &two }) {
                let schedule = id.rsplit_once('@').unwrap().0.to_owned();
                assert!(seen.insert((schedule, due)), "{id} came twice");
            }
        }
        assert_eq!(seen.len(), expected.len());
        assert_eq!(seen, expected);
    }

    fn what_was_missed_is_one_task_none_or_all(fixture) {
        let queue = fixture.one.queue("q");
        for (id, missed) in [("last", Missed::Last), ("skip", Missed::Skip), ("all", Missed::All(3))] {
            queue.schedule(Schedule::new(id, "every 1h").missed(missed)).unwrap();
        }
        fixture.clock.advance(secs(5 * HOUR) + secs(120));
        let mut count = std::collections::BTreeMap::new();
        for (id, _) in drain(&queue) {
            *count.entry(id.split('@').next().unwrap().to_owned()).or_insert(0) += 1;
        }
        assert_eq!(count.into_iter().collect::<Vec<_>>(), [("all".to_owned(), 3), ("last".to_owned(), 1)]);
        let told = ["last", "skip", "all"].map(|id| queue.the_schedule(id).missed_slots);
        assert_eq!(told, [4, 5, 2]);
        // In time, each fires.
        fixture.clock.advance(secs(HOUR) - secs(120));
        assert_eq!(drain(&queue).len(), 3);
    }

    fn a_slot_is_due_to_the_millisecond(fixture) {
        let queue = fixture.one.queue("q");
        queue.schedule(Schedule::new("a", "every 100h")).unwrap();
        fixture.clock.advance(secs(100 * HOUR) - ms(1));
        assert_nothing(&queue);
        assert_eq!(queue.claim(up_to(1)).unwrap().len(), 0);
        fixture.clock.advance(ms(1));
        take(&queue).ack().unwrap();
        assert_nothing(&queue);
    }

    fn many_that_are_due_at_once_are_fired_by_one_claim(fixture) {
        let queue = fixture.one.queue("q");
        let all = (0..1_000).map(|number| Schedule::new(format!("{number}"), "every 24h"));
        queue.sync_schedules("app", 1, all).unwrap();
        assert_eq!(queue.stats().unwrap().schedules_late, Duration::ZERO);
        fixture.clock.advance(secs(24 * HOUR));
        assert_eq!(queue.claim(up_to(1_000)).unwrap().len(), 1_000);
    }

    fn a_queue_with_schedules_is_never_forgotten(fixture) {
        let queue = fixture.one.queue("q");
        queue.schedule(Schedule::new("a", "every 3000h")).unwrap();
        for day in 0..30 {
            fixture.clock.advance(secs(10 * 24 * HOUR));
            let other = fixture.two.queue(&format!("other {day}"));
            other.enqueue(stanchion::Task::new("x")).unwrap();
            take(&other).ack().unwrap();
        }
        assert_eq!(drain(&queue).len(), 1, "the last of the missed");
    }
}

/// When the first of its schedules that has a period began.
fn first_of(queue: &AnyQueue) -> SystemTime {
    queue.the_schedule("UTC every 36h").next.unwrap() - secs(36 * HOUR)
}

/// All slots between the two times.
fn slots_of(schedule: &Schedule, begin: SystemTime, end: SystemTime) -> Vec<SystemTime> {
    let (mut slots, mut after) = (Vec::new(), begin);
    while after <= end {
        slots.extend(schedule.preview(after, 1_000).unwrap());
        after = *slots.last().unwrap();
    }
    slots.retain(|slot| *slot <= end);
    slots
}
