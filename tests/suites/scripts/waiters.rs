//! waiters.lua: reads only, so every case changes nothing.

use stanchion::internals::name_of_kind;
use stanchion::name::LockKind;
use stanchion::protocol::{Request, Waiters};

use crate::case::{Bench, describe, given, waiters};
use crate::state::{State, nothing};

/// When waiters arrived, in microseconds.
const FIRST: &str = "{then_us-9000000}";
const SECOND: &str = "{then_us-1500000}";

fn line(state: State) -> State {
    state.line(&[(2, FIRST), (3, SECOND)])
}

#[test]
fn nobody() {
    given(nothing()).call(waiters()).replies("").changes_nothing();
    given(nothing().lock("{T1}", 3_000)).call(waiters()).replies("").changes_nothing();
}

#[test]
fn the_line_in_its_order() {
    let entries = [(2, "{then-100} 1 7 host me {C} 5"), (3, "{then-2400} 0 8 host  {C} 6")];
    given(line(nothing().lock("{T1}", 3_000)).waiters(&entries))
        .call(waiters())
        .replies(
            "\"7 host me\" since {then-9000} until {now} weight 1; \"8 host \" since {then-1500} until {now} weight 1",
        )
        .changes_nothing();
}

#[test]
fn a_label_like_an_entry() {
    given(line(nothing()).waiters(&[(2, "{then} 0 7 host 1 abc 9 {C} 5")]))
        .call(waiters())
        .replies("\"7 host 1 abc 9\" since {then-9000} until {now} weight 1")
        .changes_nothing();
}

#[test]
fn an_entry_of_an_older_library_has_no_owner() {
    given(line(nothing()).waiters(&[(2, "{then-100} 0 {C} 5"), (3, "{then-100} 1 {C} 6")]))
        .call(waiters())
        .replies("\"\" since {then-9000} until {now} weight 1; \"\" since {then-1500} until {now} weight 1")
        .changes_nothing();
}

#[test]
fn the_dead_are_left_out() {
    given(
        line(nothing())
            .waiters(&[(2, "{then-2600} 0 7 host me {C} 5"), (3, "{then-100} 0 8 host you {C} 6")]),
    )
    .call(waiters())
    .replies("\"8 host you\" since {then-1500} until {now} weight 1")
    .changes_nothing();
    // A token without an entry is dead, too.
    given(line(nothing())).call(waiters()).replies("").changes_nothing();
}

#[test]
fn a_hundred_at_most_also_behind_dead_ones() {
    let mut bench = Bench::new();
    let tokens: Vec<_> = (1..=270).map(|number| (number, FIRST)).collect();
    let entry = |number| if number <= 150 { "{then-9000} 0 1 h a {C} 5" } else { "{then} 0 1 h b {C} 5" };
    let entries: Vec<_> = (1..=270).map(|number| (number, entry(number))).collect();
    bench.set_up(&nothing().line(&tokens).waiters(&entries));
    let shown = describe(&bench.call(Request::Waiters(waiters())).unwrap());
    let shown: Vec<_> = shown.split("; ").collect();
    assert_eq!(shown.len(), 100);
    assert!(shown.iter().all(|one| one.starts_with("\"1 h b\" since")), "{shown:?}");
}

#[test]
fn of_permits_with_their_weights() {
    for (kind, word) in [(LockKind::ReadWrite, "rw"), (LockKind::Semaphore, "semaphore")] {
        let mut bench = Bench::new();
        let name = name_of_kind(kind, "a").unwrap();
        let key = |sidecar: &str| format!("stanchion:{word}-{sidecar}:{{{}}}", name.key());
        let now: Vec<u64> = redis::cmd("TIME").query(&mut bench.raw).unwrap();
        let now = now[0] * 1_000 + now[1] / 1_000;
        let entries = [
            ("t1", format!("{now} 0 3 7 host 2 me a1 5")),
            ("t2", format!("{now} 1 2 a1 5")),
            ("t3", format!("{} 0 1 7 host late a1 5", now - 2_600)),
        ];
        for (place, (token, entry)) in entries.iter().enumerate() {
            let arrival = (now - 500) * 1_000 + place as u64;
            redis::cmd("ZADD").arg(key("line")).arg(arrival).arg(token).exec(&mut bench.raw).unwrap();
            redis::cmd("HSET").arg(key("waiters")).arg(token).arg(entry).exec(&mut bench.raw).unwrap();
        }
        let shown = describe(&bench.call(Request::Waiters(Waiters { name })).unwrap());
        let shown: Vec<_> = shown.split("; ").map(|one| one.split_once(" since").unwrap()).collect();
        assert_eq!(
            shown.iter().map(|one| one.0).collect::<Vec<_>>(),
            ["\"7 host 2 me\"", "\"\""],
            "{kind:?}"
        );
        let weights: Vec<_> = shown.iter().map(|one| one.1.rsplit(' ').next().unwrap()).collect();
        assert_eq!(weights, ["3", "2"]);
    }
}
