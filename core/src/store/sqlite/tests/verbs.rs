//! Every verb as a table: state before -> call -> reply and state after.
//!
//! A state is written in words. `key=1/30000`: token 1 holds the key, 30,000 ms are left.
//! `line=2,3*,4!`: three wait, 3 was offered the lock, 4 has not polled for too long. `ended=5`: token 5
//! was ended. Fences may count from the wall clock: `fence=wall+5`.

use std::fmt::Write;
use std::time::Duration;

use super::{CLIENT, acquire_of, memory, name, release_of, token, waiter};
use crate::base::token::COOLDOWN_MARKER;
use crate::protocol::{
    Absence, Acquire, AcquireReply, BreakLease, Extend, ExtendReply, Fence, HeldAs, Holder, HolderReply,
    Leave, Obstacle, Release, ReleaseReply, Reply, Request, Resume, ResumeReply,
};
use crate::store::sqlite::SqliteStore;

/// The manual clock's wall time, and its boot time, at the start: in microseconds.
const WALL: u64 = 1_577_836_801_000_000;
const NOW: i64 = 1_000_000;
const DEAD: i64 = NOW - 2_500_000;

struct Case(&'static str, &'static str, Request, Reply, &'static str);

fn check(cases: Vec<Case>) {
    for Case(title, before, request, reply, after) in cases {
        let (store, _) = memory();
        write_state(&store, before);
        assert_eq!(store.ask(request), reply, "{title}");
        assert_eq!(read_state(&store), after, "{title}");
    }
}

#[test]
#[rustfmt::skip] // a table
fn acquire() {
    let ask = |number| Request::Acquire(acquire_of("a", number));
    let least = |least| Request::Acquire(Acquire { min_fence: Fence::new(least), ..acquire_of("a", 1) });
    let wait = |number| Request::Acquire(Acquire { waiter: waiter(number), ..acquire_of("a", number) });
    let patient = |number, patience| {
        let patience = Some(millis(patience));
        Request::Acquire(Acquire { waiter: waiter(number), patience, ..acquire_of("a", number) })
    };
    check(vec![
        Case("a lock nobody used", "", ask(1), granted(WALL, 30_000), "key=1/30000 fence=wall born=wall"),
        Case("a higher stored fence", "fence=wall+7 born=3", ask(1), granted(WALL + 8, 30_000), "key=1/30000 fence=wall+8 born=3"),
        Case("a higher fence seen by the client", "fence=5", least(WALL + 9), granted(WALL + 9, 30_000), "key=1/30000 fence=wall+9"),
        Case("an expired lease", "key=2/0 fence=5", ask(1), granted(WALL, 30_000), "key=1/30000 fence=wall"),
        Case("busy", "key=2/700 fence=5", ask(1), busy(700), "key=2/700 fence=5"),
        Case("in cooldown", "key=cooldown/700 fence=5", ask(1), busy(700), "key=cooldown/700 fence=5"),
        Case("the same request again", "key=1/700 fence=5", ask(1), granted(5, 30_000), "key=1/30000 fence=5"),
        Case("again never shortens", "key=1/90000 fence=5", ask(1), granted(5, 90_000), "key=1/90000 fence=5"),
        Case("an offer is confirmed and shortened", "key=1/90000 fence=5 line=1*,2", ask(1), granted(5, 30_000), "key=1/30000 fence=5 line=2"),
        Case("ended", "key=1/700 fence=5 ended=1", ask(1), Reply::Acquire(AcquireReply::Ended), "key=1/700 fence=5 ended=1"),
        Case("another ended", "ended=2", ask(1), granted(WALL, 30_000), "key=1/30000 fence=wall born=wall ended=2"),
        Case("waits", "key=2/700 fence=5", wait(1), waiting(700), "key=2/700 fence=5 line=1"),
        Case("waits behind others", "key=2/700 fence=5 line=3,4", wait(1), behind(2, 700), "key=2/700 fence=5 line=3,4,1"),
        Case("polls and keeps its place", "key=2/700 fence=5 line=1!,4", wait(1), waiting(700), "key=2/700 fence=5 line=1,4"),
        Case("polls after a window ran out", "key=2/700 fence=5 line=1*,4", wait(1), waiting(700), "key=2/700 fence=5 line=1,4"),
        Case("free, but another is first", "fence=5 line=3,1", wait(1), waiting(1_000), "key=3/1000 fence=wall line=3*,1"),
        Case("free, another is first, no registering", "fence=5 line=3", ask(1), busy(1_000), "key=3/1000 fence=wall line=3*"),
        Case("free, the first is dead", "fence=5 line=3!,1", wait(1), granted(WALL, 30_000), "key=1/30000 fence=wall"),
        Case("free, the first let its window run out", "fence=5 line=3*,1", wait(1), granted(WALL, 30_000), "key=1/30000 fence=wall line=3*"),
        Case("free, I was dead myself", "fence=5 line=1!,2", wait(1), granted(WALL, 30_000), "key=1/30000 fence=wall line=2"),
        Case("too long for my patience", "key=2/700 fence=5", patient(1, 699), busy(700), "key=2/700 fence=5"),
        Case("short enough", "key=2/700 fence=5", patient(1, 700), waiting(700), "key=2/700 fence=5 line=1"),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn extend() {
    let ask = |ttl| Request::Extend(Extend::new(name("a"), token(1), millis(ttl)));
    let extended = |left| Reply::Extend(ExtendReply::Extended(millis(left)));
    let gone = |fence, born, broken| Reply::Extend(ExtendReply::Gone(absence(fence, born, broken)));
    check(vec![
        Case("longer", "key=1/500 fence=5", ask(900), extended(900), "key=1/900 fence=5"),
        Case("never shorter", "key=1/500 fence=5", ask(100), extended(500), "key=1/500 fence=5"),
        Case("expired", "key=1/0 fence=5 born=2", ask(900), gone(5, 2, 0), "fence=5 born=2"),
        Case("taken", "key=2/500 fence=6 born=2 broken=5", ask(900), gone(6, 2, 5), "key=2/500 fence=6 born=2 broken=5"),
        Case("unknown", "", ask(900), gone(0, 0, 0), ""),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn release() {
    let ask = || Request::Release(release_of("a", 1));
    let resent = || Request::Release(Release { acquire_resent: true, ..release_of("a", 1) });
    let cool = || Request::Release(Release { cooldown: Some(millis(250)), ..release_of("a", 1) });
    let own = |fence| Request::Release(Release { own_fence: Some(Fence::new(fence)), ..release_of("a", 1) });
    let done = || Reply::Release(ReleaseReply::Released);
    let gone = |fence, broken| Reply::Release(ReleaseReply::Gone(absence(fence, 0, broken)));
    check(vec![
        Case("nobody waits", "key=1/500 fence=5", ask(), done(), "fence=5"),
        Case("to the first", "key=1/500 fence=5 line=2,3", ask(), done(), "key=2/1000 fence=wall line=2*,3"),
        Case("over a dead one", "key=1/500 fence=5 line=2!,3", ask(), done(), "key=3/1000 fence=wall line=3*"),
        Case("over one whose window ran out", "key=1/500 fence=5 line=2*,3", ask(), done(), "key=3/1000 fence=wall line=2*,3*"),
        Case("all dead", "key=1/500 fence=5 line=2!,3!", ask(), done(), "fence=5"),
        Case("sent again", "key=1/500 fence=5", resent(), done(), "fence=5 ended=1"),
        Case("still the lease", "key=1/500 fence=5", own(5), done(), "fence=5"),
        Case("a later offer", "key=1/500 fence=6", own(5), gone(6, 0), "fence=6"),
        Case("cooldown", "key=1/500 fence=5 line=2", cool(), done(), "key=cooldown/250 fence=5 line=2"),
        Case("not mine", "key=2/500 fence=6 broken=5", ask(), gone(6, 5), "key=2/500 fence=6 broken=5"),
        Case("expired, others wait", "key=1/0 fence=5 line=2", ask(), gone(5, 0), "fence=5 line=2"),
        Case("unknown", "", ask(), gone(0, 0), ""),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn leave() {
    let ask = || Request::Leave(Leave { name: name("a"), token: token(1), foreign_share: false });
    check(vec![
        Case("gives up its place", "key=2/500 fence=5 line=1,3", ask(), Reply::Leave, "key=2/500 fence=5 line=3 ended=1"),
        Case("passes its offer on", "key=1/500 fence=5 line=1*,3", ask(), Reply::Leave, "key=3/1000 fence=wall line=3* ended=1"),
        Case("frees its grant", "key=1/500 fence=5", ask(), Reply::Leave, "fence=5 ended=1"),
        Case("before its acquire came", "", ask(), Reply::Leave, "ended=1"),
        Case("twice", "ended=1", ask(), Reply::Leave, "ended=1"),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn resume() {
    let ask = || Request::Resume(Resume { name: name("a"), old: token(1), new: token(2), undo: false, owner: "you".into() });
    let undo = || Request::Resume(Resume { name: name("a"), old: token(2), new: token(1), undo: true, owner: "me".into() });
    let resumed = |left| Reply::Resume(ResumeReply::Resumed { fence: Fence::new(5), ttl: millis(left), permits: None });
    let gone = |fence| Reply::Resume(ResumeReply::Gone(absence(fence, 0, 0)));
    check(vec![
        Case("swaps", "key=1/500 fence=5", ask(), resumed(500), "key=2/500 fence=5 owner=you"),
        Case("again", "key=2/500 fence=5", ask(), resumed(500), "key=2/500 fence=5"),
        Case("taken back", "key=2/500 fence=5", undo(), resumed(500), "key=1/500 fence=5 ended=2 owner=me"),
        Case("taken back before it came", "key=1/500 fence=5", undo(), resumed(500), "key=1/500 fence=5 ended=2"),
        Case("after it was taken back", "key=1/500 fence=5 ended=2", ask(), gone(5), "key=1/500 fence=5 ended=2"),
        Case("another's", "key=3/500 fence=6", ask(), gone(6), "key=3/500 fence=6"),
        Case("expired", "key=1/0 fence=5", ask(), gone(5), "fence=5"),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn holder() {
    let ask = || Request::Holder(Holder { name: name("a") });
    let held = |held_as, remaining, owner: &str, since_ms, waiters| {
        let (remaining, owner) = (Some(millis(remaining)), owner.to_owned());
        Reply::Holder(vec![HolderReply { held_as, fence: Fence::new(5), remaining, since_ms, owner, waiters, weight: 1 }])
    };
    let lease = "key=1/500 fence=5 line=2,3 owner=me";
    let offer = "key=2/500 fence=5 line=2*,3 owner=me";
    check(vec![
        Case("lease", lease, ask(), held(HeldAs::Lease, 500, "me", 77, 2), lease),
        Case("offer", offer, ask(), held(HeldAs::Offer, 500, "", 0, 2), offer),
        Case("cooldown", "key=cooldown/9 fence=5", ask(), held(HeldAs::Cooldown, 9, "", 0, 0), "key=cooldown/9 fence=5"),
        Case("expired", "key=1/0 fence=5", ask(), Reply::Holder(Vec::new()), "fence=5"),
        Case("unknown", "", ask(), Reply::Holder(Vec::new()), ""),
    ]);
}

#[test]
#[rustfmt::skip] // a table
fn break_lease() {
    let ask = || Request::BreakLease(BreakLease { name: name("a") });
    check(vec![
        Case("held", "key=1/500 fence=5", ask(), Reply::BreakLease(true), "fence=5 broken=5"),
        Case("others wait", "key=1/500 fence=5 line=2", ask(), Reply::BreakLease(true), "key=2/1000 fence=wall broken=5 line=2*"),
        Case("cooldown", "key=cooldown/500 fence=5 broken=3", ask(), Reply::BreakLease(true), "fence=5 broken=3"),
        Case("free", "fence=5 line=2", ask(), Reply::BreakLease(false), "fence=5 line=2"),
        Case("unknown", "", ask(), Reply::BreakLease(false), ""),
    ]);
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn granted(fence: u64, ttl: u64) -> Reply {
    Reply::Acquire(AcquireReply::Granted { fence: Fence::new(fence), ttl: millis(ttl) })
}

fn busy(remaining: u64) -> Reply {
    Reply::Acquire(AcquireReply::Busy(obstacle(remaining)))
}

fn waiting(remaining: u64) -> Reply {
    Reply::Acquire(AcquireReply::Waiting(obstacle(remaining)))
}

fn behind(rank: u32, remaining: u64) -> Reply {
    Reply::Acquire(AcquireReply::Waiting(Obstacle { rank, ..obstacle(remaining) }))
}

fn obstacle(remaining: u64) -> Obstacle {
    Obstacle { remaining: Some(millis(remaining)), unexpiring: None, rank: 0 }
}

fn absence(fence: u64, born: u64, broken: u64) -> Absence {
    let [fence, born, broken] = [fence, born, broken].map(Fence::new);
    Absence { fence, born, broken, foreign: false }
}

fn write_state(store: &SqliteStore, words: &str) {
    store.sql("UPDATE store SET boot = 'manual clock'");
    if words.is_empty() {
        return;
    }
    store.sql(&format!("INSERT INTO lock (key, used, since) VALUES ('Lock:a', {}, 77)", WALL / 1_000));
    for (word, value) in words.split(' ').map(|word| word.split_once('=').unwrap()) {
        match word {
            "key" => {
                let (holder, left) = value.split_once('/').unwrap();
                let expires = NOW + left.parse::<i64>().unwrap() * 1_000;
                store.sql(&format!("UPDATE lock SET token = '{}', expires = {expires}", text_of(holder)));
            }
            "line" => value.split(',').for_each(|entry| {
                let number = entry.trim_end_matches(['*', '!']);
                let polled = if entry.ends_with('!') { DEAD } else { NOW };
                store.sql(&format!(
                    "INSERT INTO waiter SELECT 1, count(*), '{}', {polled}, {}, {}, {number}, 1, 0, '' FROM waiter",
                    text_of(number),
                    entry.ends_with('*'),
                    CLIENT.0
                ));
            }),
            "ended" => store.sql(&format!(
                "INSERT INTO ended VALUES (1, '{}', {1}); UPDATE lock SET ended_until = {1}",
                text_of(value),
                NOW + 60_000_000
            )),
            "owner" => store.sql(&format!("UPDATE lock SET owner = '{value}'")),
            fence => {
                store.sql(&format!("UPDATE lock SET {fence} = {}", value.replace("wall", &WALL.to_string())));
            }
        }
    }
}

fn read_state(store: &SqliteStore) -> String {
    store.inside(|connection| {
        let mut words = String::new();
        let mut add = |word: &str, value: &str| {
            if !value.is_empty() && value != "0" {
                write!(words, "{word}={value} ").unwrap();
            }
        };
        let texts = |sql: &str| -> Vec<String> {
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let keys = texts(&format!(
            "SELECT token || '/' || ((expires - {NOW}) / 1000) FROM lock WHERE token IS NOT NULL AND expires > {NOW}"
        ));
        keys.iter().for_each(|key| {
            let (holder, left) = key.split_once('/').unwrap();
            add("key", &format!("{}/{left}", name_of(holder)));
        });
        for word in ["fence", "born", "broken"] {
            texts(&format!("SELECT CAST({word} AS TEXT) FROM lock")).iter().for_each(|value| add(word, &counted(value)));
        }
        let line = texts("SELECT token || substr('*', 1, offered) FROM waiter ORDER BY arrival");
        add("line", &line.iter().map(|entry| name_of(entry)).collect::<Vec<_>>().join(","));
        let ended = texts("SELECT token FROM ended");
        add("ended", &ended.iter().map(|entry| name_of(entry)).collect::<Vec<_>>().join(","));
        // The owner "me" of a grant is not repeated in every row of the tables.
        let asked = texts("SELECT owner FROM lock WHERE since = 77");
        asked.iter().for_each(|owner| add("owner", owner));
        words.trim_end().to_owned()
    })
}

fn text_of(holder: &str) -> String {
    holder.parse().map_or(COOLDOWN_MARKER.to_owned(), |number| token(number).as_str().to_owned())
}

fn name_of(text: &str) -> String {
    let number = text["9999999999999999".len()..].trim_start_matches('0');
    if number.is_empty() { "cooldown".into() } else { number.into() }
}

fn counted(fence: &str) -> String {
    match fence.parse::<u64>().unwrap().checked_sub(WALL) {
        Some(0) => "wall".into(),
        Some(above) => format!("wall+{above}"),
        None => fence.into(),
    }
}
