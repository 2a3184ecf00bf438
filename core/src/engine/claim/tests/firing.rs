//! Schedules that are due: fired between a claim's reply and what the claim makes of it.

use super::*;
use crate::protocol::{
    FireSchedule, Fired, ListSchedules, ListSchedulesReply, Missed, Overlap, ScheduleRecord, WallMillis,
};

const NOW: WallMillis = 1_700_000_000_000;

fn schedules_due(reply: ClaimReply) -> Result<Reply, Failure> {
    Ok(Reply::Queue(QueueReply::Claim(ClaimReply::SchedulesDue(Box::new(reply)))))
}

fn nothing() -> ClaimReply {
    ClaimReply::Empty { next_due: None, rank: 0, slot: None }
}

fn tasks() -> ClaimReply {
    ClaimReply::Claimed(vec![task(100, LEASE)])
}

/// One that is due each second, half a second ago for the first time since its cursor.
fn schedule(timing: &str) -> ScheduleRecord {
    ScheduleRecord {
        key: None,
        id: TaskId::parse("s").unwrap(),
        version: Version::new(7),
        timing: timing.into(),
        missed: Some(Missed::Last),
        overlap: Overlap::Queue,
        paused: false,
        cursor: NOW - 1_500,
        fresh: false,
        due: Some(NOW - 500),
        owner: String::new(),
        fired: 0,
        skipped: 0,
        missed_slots: 0,
        last_task: String::new(),
        priority: 0,
        max_attempts: 20,
        expires: 0,
        size: 0,
    }
}

fn found(schedules: Vec<ScheduleRecord>) -> Result<Reply, Failure> {
    Ok(Reply::Queue(QueueReply::ListSchedules(ListSchedulesReply { now: NOW, schedules, next: None })))
}

const EACH_SECOND: &str = r#"{"when":"every 1s","tz":"UTC"}"#;

fn look_sent(machine: &mut ClaimMachine, now: Moment) -> u32 {
    match sent(machine, now) {
        (number, QueueRequest { verb: QueueVerb::ListSchedules(ListSchedules::Due { .. }), .. }) => number,
        other => panic!("expected a look at schedules, got {other:?}"),
    }
}

fn fire_sent(machine: &mut ClaimMachine, now: Moment) -> (u32, FireSchedule) {
    match sent(machine, now) {
        (number, QueueRequest { verb: QueueVerb::Fire(fire), .. }) => (number, fire.schedules[0].clone()),
        other => panic!("expected a fire, got {other:?}"),
    }
}

fn fired(outcome: Fired) -> Result<Reply, Failure> {
    Ok(Reply::Queue(QueueReply::Fire(vec![outcome])))
}

const ONE: Fired = Fired::Fired { tasks: 1, skipped: 0 };

#[test]
fn what_is_due_is_fired_and_then_claimed() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(nothing()));
    let look = look_sent(&mut machine, at(1));
    machine.reply(at(2), look, found(vec![schedule(EACH_SECOND)]));
    let (fire, one) = fire_sent(&mut machine, at(2));
    assert_eq!((one.version, one.cursor, one.due), (Version::new(7), NOW - 500, Some(NOW + 500)));
    let slots: Vec<_> = one.tasks.iter().map(|(id, due)| (id.as_str(), *due)).collect();
    assert_eq!(slots, [("s@2023-11-14T22:13:19.5Z", NOW - 500)]);
    machine.reply(at(3), fire, fired(ONE));
    let (second, _) = claim_sent(&mut machine, at(3));
    machine.reply(at(4), second, claimed());
    let outcome = done(&mut machine, at(4));
    assert_eq!(outcome.tasks.len(), 1);
    let told = &outcome.fired[0].1;
    assert_eq!((&*told.id, told.tasks, told.late), ("s", 1, Duration::from_millis(500)));
}

#[test]
fn a_try_that_finds_nothing_gets_what_it_has_fired() {
    let mut machine = machine(0);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(nothing()));
    let look = look_sent(&mut machine, at(1));
    machine.reply(at(2), look, found(vec![schedule(EACH_SECOND)]));
    let (fire, _) = fire_sent(&mut machine, at(2));
    machine.reply(at(3), fire, fired(ONE));
    claim_sent(&mut machine, at(3));
}

#[test]
fn tasks_that_came_with_the_news_are_given_after_it() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(tasks()));
    let look = look_sent(&mut machine, at(1));
    machine.reply(at(2), look, found(vec![schedule(EACH_SECOND)]));
    let (fire, _) = fire_sent(&mut machine, at(2));
    machine.reply(at(3), fire, fired(ONE));
    assert_eq!(done(&mut machine, at(3)).tasks.len(), 1);
}

#[test]
fn a_store_that_is_silent_about_schedules_keeps_no_task_back() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(tasks()));
    look_sent(&mut machine, at(1));
    assert_eq!(waits_until(&mut machine, at(2)), at(1) + RESEND_AFTER);
    assert_eq!(done(&mut machine, at(1) + RESEND_AFTER).tasks.len(), 1);
}

#[test]
fn whoever_is_not_waited_for_gives_back_the_tasks_that_came_with_the_news() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(tasks()));
    look_sent(&mut machine, at(1));
    let leftovers: Vec<Request> = std::iter::from_fn(|| machine.abandon()).collect();
    let settled = leftovers.iter().find_map(|request| match request {
        Request::Queue(QueueRequest { verb: QueueVerb::Settle(settle), .. }) => Some(&settle.items[0]),
        _ => None,
    });
    let item = settled.expect("they are given back");
    assert_eq!((item.receipt, &item.verdict), (Receipt::new(100), &Verdict::PUT_BACK));
}

#[test]
fn one_that_a_newer_version_wrote_is_left_alone_and_said_and_nobody_asks_in_a_tight_loop() {
    for unknown in [
        schedule(r#"{"when":"@lunar","tz":"UTC"}"#),
        ScheduleRecord { missed: None, ..schedule(EACH_SECOND) },
    ] {
        let mut machine = machine(10_000);
        let (first, _) = claim_sent(&mut machine, at(0));
        machine.reply(at(1), first, schedules_due(nothing()));
        let look = look_sent(&mut machine, at(1));
        machine.reply(at(2), look, found(vec![unknown]));
        let until = waits_until(&mut machine, at(2));
        assert!(until > at(2) + POLL_FIRST / 2, "{until:?}");
        let (second, _) = claim_sent(&mut machine, until);
        machine.reply(until, second, claimed());
        let told = done(&mut machine, until).fired;
        assert_eq!((told.len(), told[0].1.is_unknown), (1, true));
    }
}

#[test]
fn somebody_else_was_faster_and_the_claim_asks_when_the_next_is_due() {
    let mut machine = machine(10_000);
    let (first, _) = claim_sent(&mut machine, at(0));
    machine.reply(at(1), first, schedules_due(nothing()));
    let look = look_sent(&mut machine, at(1));
    machine.reply(at(2), look, found(vec![schedule(EACH_SECOND)]));
    let (fire, _) = fire_sent(&mut machine, at(2));
    machine.reply(at(3), fire, fired(Fired::Stale));
    let (second, _) = claim_sent(&mut machine, at(3));
    machine.reply(at(3), second, empty(Some(400), 0));
    assert_eq!(waits_until(&mut machine, at(3)), at(403));
}

/// Of a slot in 400 ms, half a second after the one that was fired last.
fn slot_to_come(machine: &mut ClaimMachine, now: Moment, rank: u32) {
    let (first, _) = claim_sent(machine, now);
    let (next_due, slot) = (Some(Duration::from_millis(400)), Some(NOW + 500));
    let reply = ClaimReply::Empty { next_due, rank, slot };
    machine.reply(now, first, Ok(Reply::Queue(QueueReply::Claim(reply))));
}

fn found_ahead(machine: &mut ClaimMachine, now: Moment) {
    match sent(machine, now) {
        (number, QueueRequest { verb: QueueVerb::ListSchedules(ListSchedules::Due { until, .. }), .. }) => {
            assert_eq!(until, NOW + 500);
            let next = ScheduleRecord { cursor: NOW - 500, due: Some(NOW + 500), ..schedule(EACH_SECOND) };
            machine.reply(now, number, found(vec![next]));
        }
        other => panic!("expected a look at the slot to come, got {other:?}"),
    }
}

#[test]
fn the_first_in_line_has_looked_when_the_slot_is_due_and_only_fires() {
    let mut machine = machine(10_000);
    slot_to_come(&mut machine, at(0), 0);
    found_ahead(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(1)), at(400));
    assert!(machine.is_exact());
    let (fire, one) = fire_sent(&mut machine, at(400));
    assert_eq!((one.cursor, one.due, one.tasks.len()), (NOW + 500, Some(NOW + 1_500), 1));
    machine.reply(at(401), fire, fired(ONE));
    let (second, _) = claim_sent(&mut machine, at(401));
    machine.reply(at(402), second, claimed());
    assert_eq!(done(&mut machine, at(402)).fired[0].1.late, Duration::ZERO);
}

#[test]
fn what_comes_before_the_slot_is_claimed_at_once() {
    let mut machine = machine(10_000);
    slot_to_come(&mut machine, at(0), 0);
    found_ahead(&mut machine, at(0));
    assert_eq!(waits_until(&mut machine, at(1)), at(400));
    machine.hint();
    let (second, _) = claim_sent(&mut machine, at(2));
    machine.reply(at(3), second, claimed());
    assert!(done(&mut machine, at(3)).fired.is_empty());
}

#[test]
fn nobody_looks_ahead_but_the_first_in_line() {
    let mut machine = machine(10_000);
    slot_to_come(&mut machine, at(0), 1);
    assert_eq!(waits_until(&mut machine, at(1)), at(403));
}

#[test]
fn a_look_ahead_that_is_not_answered_leaves_all_as_it_is() {
    let mut machine = machine(10_000);
    slot_to_come(&mut machine, at(0), 0);
    let look = look_sent(&mut machine, at(0));
    machine.reply(at(1), look, Err(Failure::new(FailureKind::Lost, "gone")));
    assert_eq!(waits_until(&mut machine, at(1)), at(400));
    claim_sent(&mut machine, at(400));
}

#[test]
fn a_wait_that_ends_before_the_slot_ends() {
    let mut machine = machine(300);
    slot_to_come(&mut machine, at(0), 0);
    assert_eq!(waits_until(&mut machine, at(0)), at(300));
    assert!(matches!(sent(&mut machine, at(300)).1.verb, QueueVerb::Abandon(_)));
}

#[test]
fn what_happens_again_and_again_in_a_long_wait_is_told_once_with_its_sum() {
    let mut machine = machine(60_000);
    let mut now = at(0);
    let newer = ScheduleRecord { id: TaskId::parse("newer").unwrap(), missed: None, ..schedule(EACH_SECOND) };
    for _ in 0..3 {
        let (claim, _) = claim_sent(&mut machine, now);
        machine.reply(now, claim, schedules_due(nothing()));
        let look = look_sent(&mut machine, now);
        machine.reply(now, look, found(vec![newer.clone(), schedule(EACH_SECOND)]));
        let (fire, _) = fire_sent(&mut machine, now);
        machine.reply(now, fire, fired(Fired::Fired { tasks: 0, skipped: 1 }));
        let (claim, _) = claim_sent(&mut machine, now);
        machine.reply(now, claim, empty(None, 0));
        now = waits_until(&mut machine, now);
    }
    let (claim, _) = claim_sent(&mut machine, now);
    machine.reply(now, claim, claimed());
    let told: Vec<_> = done(&mut machine, now).fired.into_iter().map(|(_, one)| one).collect();
    let told: Vec<_> = told.iter().map(|one| (&*one.id, one.is_unknown, one.skipped)).collect();
    assert_eq!(told, [("newer", true, 0), ("s", false, 3)]);
}
