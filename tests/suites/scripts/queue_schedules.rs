//! queue/put_schedules.lua, queue/list_schedules.lua, queue/fire.lua, queue/pause_schedule.lua and
//! queue/remove_schedule.lua; what claim.lua and stats.lua say of schedules.

use stanchion::protocol::{FireSchedule, ListSchedules, NewSchedule, Overlap, QueueVerb};

use crate::case::given;
use crate::queue_case::{
    claim, claim_or_wait, due_schedules, fire, fire_of, pause_schedule, place, put_schedules,
    remove_schedule, schedule_of, settle_and_try,
};
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
/// The due of one that is paused, or over.
const NEVER: &str = "4503599627370496";
/// After everything here.
const LATER: &str = "4000000000000";
const FRESH: &str = "serial {us}, cursor {now}, fresh 1";

/// One that was fired before.
fn old(id: &str) -> State {
    nothing().schedule(id, LATER, "cursor 400, tasks_made 3, last_task t").agenda(LATER, 1).counts(COUNTS)
}

#[test]
fn a_new_schedule_is_due_at_once_and_fires_no_slot_of_before() {
    given(nothing())
        .call(put_schedules(None, [schedule_of("a")]))
        .replies("added")
        .leaves(nothing().schedule("a", "{now}", FRESH).agenda("{now}", 1).counts("counter {us}"));
    let paused = NewSchedule { paused: true, ..schedule_of("a") };
    given(nothing().counts(COUNTS).resting()).call(put_schedules(None, [paused])).replies("added").leaves(
        nothing()
            .schedule("a", NEVER, &format!("{FRESH}, is_paused 1"))
            .agenda(NEVER, 1)
            .counts("counter {us}, sequence 20"),
    );
}

#[test]
fn the_same_schedule_again_changes_nothing_and_another_keeps_its_slots_unless_its_times_are_others() {
    given(old("a")).call(put_schedules(None, [schedule_of("a")])).replies("kept").changes_nothing();
    let other = NewSchedule { priority: 7, ..schedule_of("a") };
    let changed = "serial {us}, cursor 400, tasks_made 3, last_task t, task_options 7 20 0 k0";
    given(old("a"))
        .call(put_schedules(None, [other]))
        .replies("changed")
        .leaves(nothing().schedule("a", LATER, changed).agenda(LATER, 1).counts("counter {us}, sequence 20"));
    let times = NewSchedule { timing: "U".into(), ..schedule_of("a") };
    let changed = format!("{FRESH}, timing U, tasks_made 3, last_task t");
    given(old("a")).call(put_schedules(None, [times])).replies("changed").leaves(
        nothing().schedule("a", "{now}", &changed).agenda("{now}", 1).counts("counter {us}, sequence 20"),
    );
}

#[test]
fn whoever_waits_is_told_of_a_schedule_that_is_due_earlier() {
    let idle = |state: State| state.idle(5, "{then+5000}");
    given(idle(nothing().counts(COUNTS).resting()))
        .call(put_schedules(None, [schedule_of("a")]))
        .replies("added")
        .hints(5)
        .leaves(
            nothing().schedule("a", "{now}", FRESH).agenda("{now}", 1).counts("counter {us}, sequence 20"),
        );
    given(idle(old("a"))).call(put_schedules(None, [schedule_of("a")])).replies("kept").changes_nothing();
}

#[test]
fn an_owner_has_what_his_newest_list_has() {
    let two = || {
        nothing()
            .schedule("a", LATER, "owner app")
            .schedule("b", LATER, "owner app")
            .owns("app", "[2 a b]")
            .agenda(LATER, 2)
            .counts(COUNTS)
    };
    given(two()).call(put_schedules(Some(("app", 3)), [schedule_of("b")])).replies("kept; 1 removed").leaves(
        nothing().schedule("b", LATER, "owner app").owns("app", "[3 b]").agenda(LATER, 1).counts(COUNTS),
    );
    given(two())
        .call(put_schedules(Some(("app", 1)), [schedule_of("c")]))
        .replies("older than 2")
        .changes_nothing();
    // What is another's by now is not his to remove.
    let taken =
        nothing().schedule("a", LATER, "owner other").owns("app", "[2 a]").agenda(LATER, 1).counts(COUNTS);
    given(taken).call(put_schedules(Some(("app", 3)), [])).replies("").leaves(
        nothing().schedule("a", LATER, "owner other").owns("app", "[3]").agenda(LATER, 1).counts(COUNTS),
    );
}

#[test]
fn firing_moves_it_on_and_makes_the_tasks() {
    let due = || nothing().schedule("a", "{then-7}", "fresh 1").agenda("{then-7}", 1).counts(COUNTS);
    let fired = "serial {us+1}, cursor 500, tasks_made 1, last_task a@5, fresh 0";
    given(due()).call(fire([fire_of("a", 30, &[("a@5", 5)])])).replies("fired 1 skipped 0").leaves(
        nothing()
            .ready("a@5", 21, "version {us}, due 5, first {now}")
            .schedule("a", LATER, fired)
            .agenda(LATER, 1)
            .counts("counter {us+1}, sequence 21, enqueued 1"),
    );
    given(due())
        .call(fire([FireSchedule { missed: 4, ..fire_of("a", 30, &[]) }]))
        .replies("fired 0 skipped 0")
        .leaves(
            nothing()
                .schedule("a", LATER, "serial {us}, cursor 500, slots_missed 4")
                .agenda(LATER, 1)
                .counts("counter {us}, sequence 20"),
        );
}

#[test]
fn a_schedule_that_has_moved_on_is_not_fired_again() {
    given(old("a")).call(fire([fire_of("a", 29, &[("a@5", 5)])])).replies("stale").changes_nothing();
    given(old("a")).call(fire([fire_of("b", 30, &[("b@5", 5)])])).replies("absent").changes_nothing();
}

#[test]
fn a_slot_is_skipped_while_the_task_before_lives_or_if_the_queue_is_full() {
    let skipped = "serial {us}, cursor 500, slots_skipped 1";
    let alone = || FireSchedule { overlap: Overlap::Skip, ..fire_of("a", 30, &[("a@5", 5)]) };
    let with = |fields: &str, state: State| state.schedule("a", LATER, fields).agenda(LATER, 1);
    let ready = || nothing().ready("t", 1, "");
    given(with("last_task t", ready()).counts(COUNTS))
        .call(fire([alone()]))
        .replies("fired 0 skipped 1")
        .leaves(with(&format!("{skipped}, last_task t"), ready()).counts("counter {us}, sequence 20"));
    given(with("", ready()).settings("max_len 1").counts(COUNTS))
        .call(fire([fire_of("a", 30, &[("a@5", 5)])]))
        .replies("fired 0 skipped 1")
        .leaves(with(skipped, ready()).settings("max_len 1").counts("counter {us}, sequence 20"));
}

#[test]
fn a_paused_one_is_due_never_and_at_once_when_it_goes_on() {
    let paused = "serial {us}, cursor 400, tasks_made 3, last_task t, is_paused 1, fresh 1";
    given(old("a"))
        .call(pause_schedule("a", true))
        .replies("done")
        .leaves(nothing().schedule("a", NEVER, paused).agenda(NEVER, 1).counts("counter {us}, sequence 20"));
    let stopped =
        || nothing().schedule("a", NEVER, "cursor 400, is_paused 1, fresh 1").agenda(NEVER, 1).counts(COUNTS);
    given(stopped()).call(pause_schedule("a", true)).replies("done").changes_nothing();
    given(stopped()).call(pause_schedule("a", false)).replies("done").leaves(
        nothing()
            .schedule("a", "{now}", "serial {us}, cursor 400, fresh 1")
            .agenda("{now}", 1)
            .counts("counter {us}, sequence 20"),
    );
    given(old("a")).call(pause_schedule("b", true)).replies("absent").changes_nothing();
}

#[test]
fn the_last_one_that_is_removed_leaves_nothing() {
    given(old("a")).call(remove_schedule("b")).replies("absent").changes_nothing();
    given(old("a")).call(remove_schedule("a")).replies("done").leaves(nothing().counts(COUNTS).resting());
    let two = old("a").schedule("b", "{then-5}", "").agenda("{then-5}", 2);
    given(two).call(remove_schedule("b")).replies("done").leaves(old("a"));
}

#[test]
fn those_that_are_due_are_listed_first_and_pages_go_on_where_they_ended() {
    let three = || {
        nothing()
            .schedule("b", "{then-5}", "fresh 1")
            .schedule("a", "{then-9}", "")
            .schedule("c", NEVER, "is_paused 1")
            .schedule("d", NEVER, "")
            .agenda("{then-9}", 4)
            .counts(COUNTS)
    };
    given(three())
        .call(due_schedules(0))
        .replies("a version 30 due {then-9}; b version 30 due {then-5} fresh")
        .changes_nothing();
    let page = |from: Option<&str>, max| {
        QueueVerb::ListSchedules(ListSchedules::Page { from: from.map(place), max })
    };
    given(three())
        .call(page(Some("13/1/z"), 2))
        .replies("a version 30 due {then-9}; b version 30 due {then-5} fresh | next 13/{then-5}/b")
        .changes_nothing();
    given(three())
        .call(page(Some(&format!("13/{NEVER}/c")), 2))
        .replies("d version 30 due never")
        .changes_nothing();
    given(three())
        .call(page(Some(&format!("13/{NEVER}/0")), 1))
        .replies(&format!("c version 30 due never paused | next 13/{NEVER}/c"))
        .changes_nothing();
}

#[test]
fn a_claim_says_that_schedules_are_due_beside_what_it_gives() {
    let due = |state: State| state.schedule("a", "{then-5}", "").agenda("{then-5}", 1);
    given(due(nothing()).counts(COUNTS))
        .call(claim(1))
        .replies("schedules due; empty never rank 0")
        .leaves(due(nothing()).call("7: [[]]").counts(COUNTS));
    given(due(nothing().settings("paused yes")).counts(COUNTS))
        .call(claim(1))
        .replies("schedules due; paused rank 0")
        .leaves(due(nothing().settings("paused yes")).call("7: [[]]").counts(COUNTS));
    given(due(nothing().ready("t", 1, "")).counts(COUNTS))
        .call(claim(1))
        .replies("schedules due; t b receipt {us} attempt 1/20 version 1 due 1 priority 0 left 30000")
        .leaves(
            due(nothing().claimed("t", "{now+30000}", "receipt {us}, attempts 1"))
                .call("7: [[t {us}]]")
                .counts("counter {us}, sequence 20"),
        );
    given(due(nothing()).counts(COUNTS))
        .call(settle_and_try(&[], 1))
        .replies(" | schedules due; empty never rank 0")
        .leaves(due(nothing()).call("7: [[] []]").counts(COUNTS));
}

#[test]
fn an_idle_consumer_is_told_when_the_next_schedule_is_due() {
    let soon = || nothing().schedule("a", "{then+9000}", "").agenda("{then+9000}", 1);
    given(soon().counts(COUNTS))
        .call(claim_or_wait(1, 5))
        .replies("empty {8900..9000} slot rank 0")
        .leaves(soon().call("7: [[]]").idle(5, "{now+7500}").counts(COUNTS));
    // And looks at it before: until the year 2096, which is before a slot that never comes.
    let both = soon().schedule("b", NEVER, "").agenda("{then+9000}", 2).counts(COUNTS);
    given(both)
        .call(due_schedules(4_000_000_000_000))
        .replies("a version 30 due {then+9000}")
        .changes_nothing();
}
