//! schedule, sync_schedules, get_schedule, list_schedules, pause_schedule, run_schedule, remove_schedule; who fires.

use std::time::{Duration, SystemTime};

use stanchion::{ErrorKind, Missed, Overlap, QueueConfig, Schedule, ScheduleOutcome, TaskState};
use stanchion_tests::faces::AnyQueue;
use stanchion_tests::on_every_store;
use stanchion_tests::wait::{SOON, eventually};

use crate::queue_support::{assert_nothing, await_one, claimer, kind, plain, put, take, up_to};
use crate::{ms, secs};

/// A time that a schedule of hours does not come to while a test runs.
const FAR: &str = "every 1000h";

fn hourly(id: &str) -> Schedule {
    Schedule::new(id, FAR).payload("work")
}

fn schedule_ids(queue: &AnyQueue) -> Vec<String> {
    let (mut ids, mut from) = (Vec::new(), None);
    loop {
        let page = queue.list_schedules(from.as_deref(), 2).unwrap();
        ids.extend(page.schedules.into_iter().map(|schedule| schedule.id));
        match page.next {
            Some(next) => from = Some(next),
            None => return ids,
        }
    }
}

on_every_store! {
    fn each_slot_makes_a_task_that_is_named_after_it(bench) {
        let queue = bench.client().queue("q");
        let schedule = Schedule::new("beat", "every 200ms").payload("tick").header("by", "cron");
        let schedule = schedule.priority(7).max_attempts(3).expires(secs(3_600));
        assert_eq!(queue.schedule(schedule).unwrap(), ScheduleOutcome::Added);
        let first = await_one(&queue);
        assert_eq!((first.payload(), first.headers()["by"].as_str()), (&b"tick"[..], "cron"));
        assert_eq!((first.priority(), first.max_attempts()), (7, 3));
        assert!(first.id().starts_with("beat@20"), "{}", first.id());
        assert!(queue.task(first.id()).expires.is_some());
        first.ack().unwrap();
        let second = await_one(&queue);
        assert_ne!(second.id(), first.id());
        let between = second.due().duration_since(first.due()).unwrap();
        assert_eq!(between.as_millis() % 200, 0, "{between:?}");
        second.ack().unwrap();
        assert!(queue.the_schedule("beat").fired >= 2);
    }

    fn a_waiting_consumer_is_woken_for_a_slot(bench) {
        let queue = bench.client().queue("q");
        let waiting = claimer(&bench.client().queue("q"));
        queue.schedule(Schedule::new("a", "every 300ms")).unwrap();
        let claim = waiting.join();
        assert!(claim.id().starts_with("a@"));
        let late = SystemTime::now().duration_since(claim.due()).unwrap_or_default();
        assert!(late < SOON, "{late:?}");
        claim.ack().unwrap();
        queue.remove_schedule("a").unwrap();
    }

    fn many_consumers_fire_a_slot_once(bench) {
        let queue = bench.client().queue("q");
        let in_a_moment = SystemTime::now() + ms(400);
        let slots: Vec<_> = (0..3).map(|number| in_a_moment + ms(200 * number)).collect();
        let waiting: Vec<_> = (0..6).map(|_| claimer(&bench.client().queue("q"))).collect();
        let times = slots.iter().map(|slot| rfc3339(*slot)).collect::<Vec<_>>().join(", ");
        queue.schedule(Schedule::new("a", format!("at {times}")).missed(Missed::All(9))).unwrap();
        queue.schedule(Schedule::new("b", format!("at {times}")).missed(Missed::All(9))).unwrap();
        let claims: Vec<_> = waiting.into_iter().map(|claim| claim.join()).collect();
        let mut ids: Vec<_> = claims.iter().map(|claim| claim.id().to_owned()).collect();
        ids.sort_unstable();
        let mut expected: Vec<_> = slots.iter().flat_map(|slot| ["a", "b"].map(|id| format!("{id}@{}", rfc3339(*slot)))).collect();
        expected.sort_unstable();
        assert_eq!(ids, expected);
        assert_eq!((queue.the_schedule("a").fired, queue.the_schedule("a").next), (3, None));
        assert_nothing(&queue);
    }

    fn a_schedule_is_shown_as_it_was_put(bench) {
        let queue = bench.client().queue("q");
        assert_eq!(queue.get_schedule("a").unwrap(), None);
        let (starts, ends) = (wall_in(secs(3_600)), wall_in(secs(40 * 24 * 3_600)));
        let schedule = Schedule::new("a", "30 2 * * MON-FRI").tz("Europe/Berlin").jitter(secs(60));
        let schedule = schedule.missed(Missed::All(5)).overlap(Overlap::Skip).starts(starts).ends(ends);
        queue.schedule(schedule.clone().payload("x").priority(3).max_attempts(4).expires(secs(9))).unwrap();
        let shown = queue.the_schedule("a");
        assert_eq!((shown.when.as_str(), shown.tz.as_str()), ("30 2 * * MON-FRI", "Europe/Berlin"));
        assert_eq!((shown.missed, shown.overlap, shown.jitter), (Some(Missed::All(5)), Overlap::Skip, secs(60)));
        assert_eq!((shown.starts, shown.ends), (Some(starts), Some(ends)));
        assert_eq!((shown.priority, shown.max_attempts, shown.expires), (3, 4, Some(secs(9))));
        assert_eq!((shown.paused, shown.fired, shown.skipped, shown.missed_slots), (false, 0, 0, 0));
        assert_eq!((shown.owner, shown.last_task), (None, None));
        assert!(shown.size > 0);
        assert_eq!(shown.next, schedule.preview(SystemTime::now(), 1).unwrap().first().copied());
        assert_eq!(queue.stats().unwrap().schedules, 1);
    }

    fn putting_it_again_keeps_or_changes_it_and_only_another_time_moves_its_slots(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(hourly("a")).unwrap();
        let next = queue.the_schedule("a").next;
        assert!(next.is_some());
        assert_eq!(queue.schedule(hourly("a")).unwrap(), ScheduleOutcome::Kept);
        for changed in [
            hourly("a").payload("other"),
            hourly("a").payload("other").priority(1),
            hourly("a").payload("other").missed(Missed::Skip),
            hourly("a").payload("other").overlap(Overlap::Skip),
            hourly("a"),
        ] {
            assert_eq!(queue.schedule(changed).unwrap(), ScheduleOutcome::Changed);
            assert_eq!(queue.the_schedule("a").next, next);
        }
        assert_eq!(queue.schedule(Schedule::new("a", "every 2000h")).unwrap(), ScheduleOutcome::Changed);
        assert_ne!(queue.the_schedule("a").next, next);
    }

    fn pages_have_all_in_the_order_in_which_they_are_due(bench) {
        let queue = bench.client().queue("q");
        for (id, hours) in [("e", 5_000), ("c", 3_000), ("a", 1_000), ("d", 4_000), ("b", 2_000)] {
            queue.schedule(Schedule::new(id, format!("every {hours}h"))).unwrap();
        }
        for id in ["z", "y"] {
            queue.schedule(hourly(id).paused(true)).unwrap();
        }
        assert_eq!(schedule_ids(&queue), ["a", "b", "c", "d", "e", "y", "z"]);
        queue.pause_schedule("c").unwrap();
        assert_eq!(schedule_ids(&queue), ["a", "b", "d", "e", "c", "y", "z"]);
        assert_eq!(kind(queue.list_schedules(Some("8/1/00"), 2)), ErrorKind::InvalidArgument);
    }

    fn a_paused_one_fires_nothing_and_goes_on_without_the_slots_of_the_pause(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(Schedule::new("a", "every 100ms").missed(Missed::All(1_000)).paused(true)).unwrap();
        assert_eq!((queue.the_schedule("a").paused, queue.the_schedule("a").next), (true, None));
        eventually(SOON, || !queue.claim(up_to(1).wait(ms(250))).unwrap().iter().any(|_| true));
        assert_eq!(queue.the_schedule("a").fired, 0);
        assert!(queue.resume_schedule("a").unwrap());
        assert!(queue.resume_schedule("a").unwrap(), "it goes on already");
        let resumed = SystemTime::now();
        let first = await_one(&queue);
        assert!(first.due() + secs(1) > resumed, "a slot of the pause");
        first.ack().unwrap();
        assert!(queue.pause_schedule("a").unwrap());
        assert!(!queue.pause_schedule("b").unwrap() && !queue.resume_schedule("b").unwrap());
        queue.purge().unwrap();
        assert_nothing(&queue);
        assert_eq!(queue.schedule(Schedule::new("a", "every 100ms").missed(Missed::All(1_000))).unwrap(), ScheduleOutcome::Kept);
        assert!(queue.the_schedule("a").paused, "a pause outlives a deploy");
    }

    fn run_now_makes_a_task_and_leaves_the_slots(bench) {
        let queue = bench.client().queue("q");
        assert_eq!(queue.run_schedule("a").unwrap(), None);
        for paused in [false, true] {
            let id = if paused { "paused" } else { "a" };
            queue.schedule(hourly(id).paused(paused)).unwrap();
            let before = queue.the_schedule(id);
            let task = queue.run_schedule(id).unwrap().unwrap();
            let claim = take(&queue);
            assert_eq!((claim.id(), claim.payload()), (task.as_str(), &b"work"[..]));
            claim.ack().unwrap();
            let after = queue.the_schedule(id);
            assert_eq!((after.next, after.paused, after.fired), (before.next, paused, 1));
            assert_eq!(after.last_task, Some(task));
        }
    }

    fn a_removed_one_fires_no_more_and_its_tasks_stay(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(hourly("a")).unwrap();
        let task = queue.run_schedule("a").unwrap().unwrap();
        assert!(queue.remove_schedule("a").unwrap());
        assert!(!queue.remove_schedule("a").unwrap());
        assert_eq!(queue.stats().unwrap().schedules, 0);
        assert_eq!(queue.task(&task).state, TaskState::Ready);
    }

    fn a_slot_is_skipped_while_the_task_before_lives(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(Schedule::new("a", "every 100ms").overlap(Overlap::Skip)).unwrap();
        let first = await_one(&queue);
        eventually(SOON, || {
            assert!(queue.claim(up_to(1)).unwrap().is_empty(), "a second task of the schedule");
            queue.the_schedule("a").skipped >= 2
        });
        assert_eq!(queue.the_schedule("a").fired, 1);
        first.ack().unwrap();
        await_one(&queue).ack().unwrap();
    }

    fn a_full_queue_skips_slots_and_says_so(bench) {
        let queue = bench.client().queue("q");
        queue.configure(QueueConfig::new().max_len(Some(1))).unwrap();
        put(&queue, &["full"]);
        queue.schedule(Schedule::new("a", "every 100ms")).unwrap();
        let claim = take(&queue);
        eventually(SOON, || {
            assert!(queue.claim(up_to(1)).unwrap().is_empty(), "it is full");
            queue.the_schedule("a").skipped >= 1
        });
        assert_eq!(kind(queue.run_schedule("a")), ErrorKind::QueueFull);
        claim.ack().unwrap();
        await_one(&queue).ack().unwrap();
    }

    fn a_list_is_what_its_owner_has_and_an_older_one_changes_nothing(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(hourly("mine")).unwrap();
        let sync = |owner: &str, generation, ids: &[&str]| {
            let synced = queue.sync_schedules(owner, generation, ids.iter().map(|id| hourly(id))).unwrap();
            (synced.added, synced.changed, synced.kept, synced.removed, synced.newer)
        };
        assert_eq!(sync("app", 1, &["a", "b"]), (2, 0, 0, 0, None));
        assert_eq!(sync("app", 1, &["a", "b"]), (0, 0, 2, 0, None));
        assert_eq!(sync("app", 2, &["b", "c"]), (1, 0, 1, 1, None));
        assert_eq!(sync("app", 1, &["a", "b"]), (0, 0, 0, 0, Some(2)));
        assert_eq!(sync("other", 1, &["d"]), (1, 0, 0, 0, None));
        let mut ids = schedule_ids(&queue);
        ids.sort_unstable();
        assert_eq!(ids, ["b", "c", "d", "mine"]);
        assert_eq!(queue.the_schedule("b").owner.as_deref(), Some("app"));
        // What another takes over is his.
        assert_eq!(sync("other", 2, &["c", "d"]), (0, 1, 1, 0, None));
        assert_eq!(sync("app", 3, &[]), (0, 0, 0, 1, None));
        assert_eq!(queue.the_schedule("c").owner.as_deref(), Some("other"));
        assert_eq!(queue.the_schedule("mine").owner, None);
    }

    fn a_deploy_keeps_the_slots_of_what_it_has_as_before(bench) {
        let queue = bench.client().queue("q");
        queue.sync_schedules("app", 1, [hourly("a"), hourly("b")]).unwrap();
        let next = queue.the_schedule("a").next;
        queue.pause_schedule("b").unwrap();
        queue.sync_schedules("app", 2, [hourly("a").payload("new"), hourly("b")]).unwrap();
        assert_eq!(queue.the_schedule("a").next, next);
        assert!(queue.the_schedule("b").paused);
    }

    fn schedules_outlive_a_purge_and_an_empty_queue(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(Schedule::new("a", "every 300ms")).unwrap();
        put(&queue, &["x"]);
        queue.purge().unwrap();
        assert_eq!(queue.stats().unwrap().schedules, 1);
        await_one(&queue).ack().unwrap();
        await_one(&queue).ack().unwrap();
    }

    fn nobody_who_works_is_said(bench) {
        let queue = bench.client().queue("q");
        queue.schedule(Schedule::new("a", "every 100ms")).unwrap();
        eventually(SOON, || queue.stats().unwrap().schedules_late > ms(50));
        assert!(queue.the_schedule("a").late > Duration::ZERO);
        assert_eq!(queue.stats().unwrap().enqueued, 0, "nobody fires who only looks");
        take(&queue).ack().unwrap();
        assert!(queue.the_schedule("a").late < secs(1));
    }

    fn a_claim_of_several_queues_fires_in_each(bench) {
        let client = bench.client();
        let (one, two) = (client.queue("one"), client.queue("two"));
        one.schedule(Schedule::new("a", "every 300ms")).unwrap();
        two.schedule(Schedule::new("b", "every 300ms")).unwrap();
        for _ in 0..2 {
            let claims = client.queues(&["one", "two"]).claim(up_to(1).wait(SOON)).unwrap();
            claims[0].ack().unwrap();
            client.queue(claims[0].queue()).remove_schedule(&claims[0].id()[..1]).unwrap();
        }
        assert_eq!((one.stats().unwrap().schedules, two.stats().unwrap().schedules), (0, 0));
    }

    fn a_paused_queue_goes_on_firing_and_its_tasks_wait(bench) {
        let queue = bench.client().queue("q");
        queue.pause().unwrap();
        queue.schedule(Schedule::new("a", "every 100ms")).unwrap();
        eventually(SOON, || {
            assert!(queue.claim(up_to(1)).unwrap().is_empty());
            queue.stats().unwrap().ready >= 1
        });
        queue.resume().unwrap();
        take(&queue).ack().unwrap();
    }

    fn bad_schedules_are_refused_and_named(bench) {
        let queue = bench.client().queue("q");
        let new = |when: &str| Schedule::new("a", when);
        let past = SystemTime::now() - secs(60);
        for (bad, says) in [
            (Schedule::new("", "@daily"), "id"),
            (Schedule::new("x".repeat(481), "@daily"), "480 bytes"),
            (new("0 25 * * *"), "field 2 (hour)"),
            (new("0 0 30 2 *"), "never matches"),
            (new("@daily").tz("Mars/Olympus"), "tz: \"Mars/Olympus\""),
            (new("@daily").jitter(secs(86_401)), "jitter"),
            (new("@daily").missed(Missed::All(0)), "missed"),
            (new("@daily").missed(Missed::All(1_001)), "missed"),
            (new("@daily").starts(past).ends(past - secs(1)), "ends: it is before starts"),
            (new("every 1s").ends(past), "no slot comes any more"),
            (new("at 2020-01-01T00:00:00Z"), "no slot comes any more"),
            (new(&"1,".repeat(2_001)), "when"),
            (new("@daily").max_attempts(0), "max_attempts"),
            (new("@daily").payload(vec![0; stanchion::MAX_PAYLOAD + 1]), "payload"),
        ] {
            let error = queue.schedule(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{says}");
            assert!(error.to_string().contains(says), "{error}");
        }
        for count in [0, 1_001] {
            assert_eq!(kind(new("@daily").preview(past, count)), ErrorKind::InvalidArgument, "{count}");
        }
        let sync = |owner: &str, generation, list: Vec<Schedule>| kind(queue.sync_schedules(owner, generation, list));
        assert_eq!(sync("", 1, vec![]), ErrorKind::InvalidArgument);
        assert_eq!(sync("app", u64::MAX, vec![]), ErrorKind::InvalidArgument);
        assert_eq!(sync("app", 1, vec![hourly("a"), hourly("a")]), ErrorKind::InvalidArgument);
        assert_eq!(sync("app", 1, vec![hourly("a"), new("0 25 * * *")]), ErrorKind::InvalidArgument);
        assert_eq!(sync("app", 1, (0..1_001).map(|number| hourly(&number.to_string())).collect()), ErrorKind::InvalidArgument);
        assert_eq!(queue.stats().unwrap().schedules, 0);
        // One that is over may be in a list: it was not when that was written.
        queue.sync_schedules("app", 1, [new("at 2020-01-01T00:00:00Z")]).unwrap();
        assert_eq!(queue.the_schedule("a").next, None);
        assert_nothing(&queue);
    }

    fn a_schedule_of_a_task_that_was_put_by_hand_meets_it(bench) {
        let queue = bench.client().queue("q");
        // A schedule whose time has passed when it is put in makes no task: two whole seconds are left for that.
        let slot = wall_in(secs(3));
        let slot = slot - Duration::from_nanos(u64::from(slot.duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos()));
        put(&queue, &[&format!("a@{}", rfc3339(slot))]);
        queue.schedule(Schedule::new("a", format!("at {}", rfc3339(slot)))).unwrap();
        take(&queue).ack().unwrap();
        let again = await_one(&queue);
        assert_eq!(again.due(), slot, "the id was free again");
        again.ack().unwrap();
        queue.enqueue(plain("end")).unwrap();
        assert_eq!(take(&queue).id(), "end");
    }
}

/// The store's kind of time, so long from now.
fn wall_in(time: Duration) -> SystemTime {
    crate::wall() + time
}

/// As slots' ids have it.
fn rfc3339(time: SystemTime) -> String {
    let millis = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    jiff::Timestamp::from_millisecond(i64::try_from(millis).unwrap()).unwrap().to_string()
}
