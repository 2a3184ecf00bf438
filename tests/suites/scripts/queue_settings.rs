//! queue/pause.lua, queue/configure.lua and queue/purge.lua

use stanchion::protocol::{Configure, Pause, QueueVerb};

use crate::case::given;
use crate::queue_case::ms;
use crate::state::{State, nothing};

const COUNTS: &str = "counter 50, sequence 20";
const LIVE: &str = "{then+9000}";

fn pause(paused: bool) -> QueueVerb {
    QueueVerb::Pause(Pause { paused })
}

#[test]
fn a_pause_lasts_until_it_is_ended() {
    let paused = || nothing().settings("paused yes");
    given(nothing()).call(pause(true)).replies("done").leaves(paused());
    given(paused()).call(pause(true)).replies("done").changes_nothing();
    given(paused()).call(pause(false)).replies("done").leaves(nothing());
    given(nothing().counts(COUNTS).resting())
        .call(pause(true))
        .replies("done")
        .leaves(paused().counts(COUNTS));
    given(paused().counts(COUNTS))
        .call(pause(false))
        .replies("done")
        .leaves(nothing().counts(COUNTS).resting());
    let both = || nothing().settings("paused yes, max_len 5").counts(COUNTS);
    given(both()).call(pause(false)).replies("done").leaves(nothing().settings("max_len 5").counts(COUNTS));
}

#[test]
fn the_end_of_a_pause_hints_a_consumer_if_there_is_work() {
    let idle = |state: State| state.idle(5, "{then+5000}").counts(COUNTS);
    let ready = || nothing().ready("a", 1, "");
    given(idle(ready().settings("paused yes")))
        .call(pause(false))
        .replies("done")
        .hints(5)
        .leaves(ready().counts(COUNTS));
    // Those who asked meanwhile do not know when it is due.
    let later = || nothing().scheduled("a", LIVE, "");
    given(idle(later().settings("paused yes")))
        .call(pause(false))
        .replies("done")
        .hints(5)
        .leaves(later().counts(COUNTS));
    given(idle(later())).call(pause(false)).replies("done").changes_nothing();
    given(idle(nothing().settings("paused yes")))
        .call(pause(false))
        .replies("done")
        .leaves(idle(nothing()).resting());
    given(idle(ready())).call(pause(true)).replies("done").leaves(idle(ready().settings("paused yes")));
}

fn configure(change: Configure) -> QueueVerb {
    QueueVerb::Configure(change)
}

#[test]
fn settings_are_changed_one_by_one() {
    let change = Configure {
        max_len: Some(Some(5)),
        dead_max: Some(6),
        dead_age: Some(ms(7)),
        dead_bytes: Some(8),
        intake: Some(false),
        events: None,
        ..Configure::default()
    };
    let settings = "max_len 5, dead_max 6, dead_age 7, dead_bytes 8, intake 0";
    let set = || nothing().settings(settings);
    given(nothing()).call(configure(change.clone())).replies("done").leaves(set());
    given(nothing().counts(COUNTS).resting())
        .call(configure(change))
        .replies("done")
        .leaves(set().counts(COUNTS));
    given(set()).call(configure(Configure::default())).replies("done").changes_nothing();
    let intake = Configure { intake: Some(true), ..Configure::default() };
    given(set())
        .call(configure(intake))
        .replies("done")
        .leaves(nothing().settings(&settings.replace("intake 0", "intake 1")));
    let no_limit = || Configure { max_len: Some(None), ..Configure::default() };
    given(set())
        .call(configure(no_limit()))
        .replies("done")
        .leaves(nothing().settings(&settings.replace("max_len 5, ", "")));
    given(nothing().settings("max_len 5").counts(COUNTS))
        .call(configure(no_limit()))
        .replies("done")
        .leaves(nothing().counts(COUNTS).resting());
    // Lower caps hold at once.
    let dead = || {
        nothing().dead("11", "y", "{then-20}", "").settings("dead_max 1").counts("counter 50, dead_size 1")
    };
    let dead_max = Configure { dead_max: Some(1), ..Configure::default() };
    given(
        nothing()
            .dead("10", "x", "{then-30}", "")
            .dead("11", "y", "{then-20}", "")
            .counts("counter 50, dead_size 2"),
    )
    .call(configure(dead_max))
    .replies("done")
    .leaves(dead());
    // As large as numbers go, and exact.
    let huge = Configure { dead_bytes: Some(u64::MAX), ..Configure::default() };
    given(nothing())
        .call(configure(huge))
        .replies("done")
        .leaves(nothing().settings("dead_bytes 9007199254740992"));
}

#[test]
fn a_purge_drops_everything_but_settings_counters_and_consumers() {
    let before = nothing()
        .ready("r", 1, "")
        .scheduled("s", LIVE, "")
        .claimed("c", LIVE, "receipt 40, has_successor 1")
        .successor("c", "")
        .dead("10", "d", "{then-5}", "")
        .dead("11", "e", "{then-5}", "")
        .window("w", LIVE, 9_000)
        .intake("i", "5")
        .idle(5, LIVE)
        .call("6: [[]]");
    let counts = "counter 50, sequence 20, enqueued 9, died 2";
    let rest = |state: State| state.idle(5, LIVE).call("6: [[]]");
    given(before.clone().counts(&format!("{counts}, dead_size 2")))
        .call(QueueVerb::Purge)
        .replies("6")
        .leaves(rest(nothing().counts(counts).resting()));
    let kept = |settings: &str, state: State| state.settings(settings).counts(counts);
    given(kept("max_len 5", before.clone()))
        .call(QueueVerb::Purge)
        .replies("6")
        .leaves(rest(kept("max_len 5", nothing())));
    // What is not the queue's stays.
    given(kept("intake 0", before))
        .call(QueueVerb::Purge)
        .replies("5")
        .leaves(rest(kept("intake 0", nothing().intake("i", "5"))));
    // The record lived as long as its dead.
    given(nothing().dead("10", "d", "{then-5}", "").counts("counter 50, dead_size 1").resting())
        .call(QueueVerb::Purge)
        .replies("1")
        .leaves(nothing().counts("counter 50").resting());
    given(nothing()).call(QueueVerb::Purge).replies("0").leaves(nothing());
}
