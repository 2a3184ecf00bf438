//! What is stored: to be set up before a call, and to be compared with afterwards.
//!
//! Texts may have placeholders: `{T1}` is token 1; `{C}` is the client's number; `{then-100}` is the server's
//! time in milliseconds when the state was set up, less 100. In what is expected, `{now+100}` is the time of
//! the call in milliseconds, `{up+100}` the same rounded up, `{us}` in microseconds, `{sec}` in seconds;
//! `{fence}` is the fence in the reply, `{~5000}` a lifetime of 5000 ms that has run since the set-up, and
//! `{14..26}` a number between those.

use std::collections::BTreeMap;
use std::fmt::Write;

use redis::Connection;
use stanchion::internals::{lock_name, token};

use crate::packed::{body_of, packed, readable};
use crate::queue_state::{real_key, shown_key};

/// The script constants, as a reader of the tables needs them.
/// How long a lock's record lives; the name is from when that was a week.
pub const WEEK: u64 = BEYOND + 100_000;
/// How long it outlives a lease of 100 s or more.
pub const BEYOND: u64 = 1_260_000;
/// How long a queue's record lives.
pub const QUEUE_WEEK: u64 = (7 * 24 + 1) * 3_600_000;
/// How long the dead are kept.
pub const DEAD_AGE: u64 = 90 * 24 * 3_600_000;
/// How much longer the record of a queue lives.
pub const QUEUE_REFRESH: u64 = 3_600_000;
/// The keys of a queue that end with its dead where no task lives.
const OF_THE_DEAD: [&str; 4] = ["q:body", "q:dead", "q:expired", "q:grave"];
pub const LINE_TTL: u64 = 60_000;
pub const ENDED_TTL: u64 = 60_000;
pub const WINDOW: u64 = 1_000;

/// How much later than the server's clock says a call may seem to be.
const SLACK_MS: u64 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Hash(BTreeMap<String, String>),
    Zset(Vec<(String, String)>),
    List,
}

/// Keys with content and remaining life; `None` never expires.
#[derive(Clone, Debug, Default)]
pub struct State(pub BTreeMap<String, (Content, Option<u64>)>);

/// The key of the lock or of a sidecar.
pub fn key(kind: &str) -> String {
    let lock = lock_name("a").unwrap();
    match kind {
        "lock" => lock.key().to_owned(),
        kind => match kind.split_once(' ') {
            Some((kind, suffix)) => format!("stanchion:{kind}:{{{}}}:{suffix}", lock.key()),
            None => format!("stanchion:{kind}:{{{}}}", lock.key()),
        },
    }
}

/// The text of token `number`.
pub fn secret(number: u128) -> String {
    token(number).as_str().to_owned()
}

/// No keys at all.
pub fn nothing() -> State {
    State::default()
}

impl State {
    pub fn with(mut self, kind: &str, content: Content, ttl: Option<u64>) -> Self {
        self.0.insert(key(kind), (content, ttl));
        self
    }

    pub fn lock(self, value: &str, ttl: u64) -> Self {
        self.with("lock", Content::Text(value.to_owned()), Some(ttl))
    }

    pub fn lock_for_ever(self, value: &str) -> Self {
        self.with("lock", Content::Text(value.to_owned()), None)
    }

    /// Fields as "name value, name value".
    pub fn meta(self, fields: &str, ttl: u64) -> Self {
        let field = |text: &str| {
            let (name, value) = text.split_once(' ').expect("a field has a value");
            (name.to_owned(), value.to_owned())
        };
        self.with("meta", Content::Hash(fields.split(", ").map(field).collect()), Some(ttl))
    }

    /// Tokens with their arrivals, oldest first.
    pub fn line(self, tokens: &[(u128, &str)]) -> Self {
        let member = |(number, score): &(u128, &str)| (secret(*number), (*score).to_owned());
        self.with("line", Content::Zset(tokens.iter().map(member).collect()), Some(LINE_TTL))
    }

    /// Tokens with their entries.
    pub fn waiters(self, tokens: &[(u128, &str)]) -> Self {
        let entry = |(number, entry): &(u128, &str)| (secret(*number), (*entry).to_owned());
        self.with("waiters", Content::Hash(tokens.iter().map(entry).collect()), Some(LINE_TTL))
    }

    pub fn ended(self, number: u128) -> Self {
        self.with(&format!("ended {}", secret(number)), Content::Text("1".into()), Some(ENDED_TTL))
    }

    /// Writes it to an empty database.
    pub fn set_up(&self, raw: &mut Connection, context: &Context) {
        let bodies = self.bodies();
        for (name, (content, ttl)) in &self.0 {
            let key = &real_key(name, context.client);
            let fill = |text: &str| context.fill(text);
            match content {
                Content::Text(text) => {
                    redis::cmd("SET").arg(key).arg(packed(name, "", &fill(text))).exec(raw)
                }
                Content::List => redis::cmd("RPUSH").arg(key).arg("x").exec(raw),
                Content::Hash(fields) => {
                    let mut command = redis::cmd("HSET");
                    command.arg(key);
                    for (field, value) in fields {
                        let has_body = ["q:state", "q:grave"].contains(&&**name);
                        let value = match bodies.get(field) {
                            _ if name == "q:queue" && field == "counts" && !value.contains("trim_at") => {
                                value.clone() + &self.ends(*ttl, context.then / 1_000)
                            }
                            Some(body) if has_body => format!("{value}, body {body}"),
                            _ => value.clone(),
                        };
                        let value = if name == "q:state" { value + &self.held_turn(field) } else { value };
                        let shown = match bodies.get(field) {
                            Some(body) if name == "q:body" => body.to_string(),
                            _ => fill(field),
                        };
                        command.arg(shown.replace('+', "\u{1}").replace('=', "\u{2}")).arg(packed(
                            name,
                            &shown,
                            &fill(&value),
                        ));
                    }
                    command.exec(raw)
                }
                Content::Zset(members) => {
                    let mut command = redis::cmd("ZADD");
                    command.arg(key);
                    for (member, score) in members {
                        command.arg(fill(score)).arg(fill(member));
                    }
                    command.exec(raw)
                }
            }
            .unwrap();
            if let Some(ttl) = ttl {
                redis::cmd("PEXPIRE").arg(key).arg(ttl).exec(raw).unwrap();
            }
        }
    }

    /// The turn of a task that its key holds, which does not show: with it, its member of the set is found.
    fn held_turn(&self, id: &str) -> String {
        let Some((Content::Zset(members), _)) = self.0.get("q:held") else { return String::new() };
        let turn = |(member, _): &(String, String)| {
            let rest = member.split_once('\u{1}')?.1;
            (&rest[16..] == id).then(|| rest[..16].parse::<u64>().unwrap() % (1 << 45))
        };
        members.iter().find_map(turn).map_or_else(String::new, |turn| format!(", turn {turn}"))
    }

    /// What the bodies are called in the store; here they have the fields of their tasks.
    fn bodies(&self) -> BTreeMap<&String, u64> {
        match self.0.get("q:body") {
            Some((Content::Hash(fields), _)) => {
                fields.keys().filter(|name| !name.starts_with('=')).zip(1_000..).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Reads everything there is in the database.
    pub fn read(raw: &mut Connection) -> Self {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(raw).unwrap();
        let read = |key: String| {
            let kind: String = redis::cmd("TYPE").arg(&key).query(raw).unwrap();
            let name = shown_key(&key);
            let content = match &*kind {
                "string" => {
                    let value: Vec<u8> = redis::cmd("GET").arg(&key).query(raw).unwrap();
                    Content::Text(readable(&name, "", &value))
                }
                "hash" => {
                    let fields: BTreeMap<Vec<u8>, Vec<u8>> =
                        redis::cmd("HGETALL").arg(&key).query(raw).unwrap();
                    let shown = |(field, value): (Vec<u8>, Vec<u8>)| {
                        let field = match &*name {
                            // A result that a message of the outbox has.
                            "q:body" if field.len() > 1 && field[0] == 2 => {
                                String::from_utf8_lossy(&field).replace('\u{2}', "=")
                            }
                            "q:body" => field.escape_ascii().to_string(),
                            _ => String::from_utf8_lossy(&field).replace('\u{1}', "+").replace('\u{2}', "="),
                        };
                        let value = readable(&name, &field, &value);
                        (field, value)
                    };
                    Content::Hash(fields.into_iter().map(shown).collect())
                }
                "zset" => {
                    let members: Vec<(Vec<u8>, String)> =
                        redis::cmd("ZRANGE").arg(&key).arg(0).arg(-1).arg("WITHSCORES").query(raw).unwrap();
                    let shown = |(member, score): (Vec<u8>, String)| {
                        (String::from_utf8_lossy(&member).into_owned(), score)
                    };
                    Content::Zset(members.into_iter().map(shown).collect())
                }
                _ => Content::List,
            };
            let ttl: i64 = redis::cmd("PTTL").arg(&key).query(raw).unwrap();
            (name, (content, u64::try_from(ttl).ok()))
        };
        let mut state = Self(keys.into_iter().map(read).collect());
        let owners = owners(raw);
        if let Some((Content::Hash(bodies), _)) = state.0.get_mut("q:body") {
            let named = std::mem::take(bodies).into_iter();
            *bodies = named.map(|(name, body)| (owners.get(&name).unwrap_or(&name).clone(), body)).collect();
        }
        state
    }

    /// Of a queue in which no task lives: whether its record is to end.
    fn rests(&self) -> Option<bool> {
        let record = self.0.get("q:queue").filter(|_| !self.0.contains_key("q:state"));
        record.map(|(_, ttl)| ttl.is_some())
    }

    /// What the record of a queue says of when things end.
    fn ends(&self, ttl: Option<u64>, now: u64) -> String {
        let ends_at = ttl.map_or(0, |ttl| now + ttl);
        let has_dead = ["q:dead", "q:expired"].iter().any(|key| self.0.contains_key(*key));
        let trim_at = if has_dead { now + DEAD_AGE - 60_000 } else { 0 };
        format!(", ends_at {ends_at}, trim_at {trim_at}")
    }

    /// What differs between the real state and this expected one; empty if nothing does.
    pub fn differences(&self, real: &Self, context: &Context) -> String {
        let mut text = String::new();
        for key in real.0.keys().filter(|key| !self.0.contains_key(*key)) {
            writeln!(text, "  {key}: not expected, but there: {:?}", real.0[key]).unwrap();
        }
        for (key, (expected, ttl)) in &self.0 {
            let Some((found, left)) = real.0.get(key) else {
                writeln!(text, "  {key}: missing").unwrap();
                continue;
            };
            if !content_matches(expected, found, context) {
                writeln!(text, "  {key}: expected {expected:?}\n    found {found:?}").unwrap();
            }
            let lives = match (ttl, left) {
                // A record lives twice as long as what is left of its lease: what has run of that counts twice.
                (Some(ttl), Some(left)) if *key == self::key("meta") => {
                    context.lifetime_matches(*ttl, *left, 2)
                }
                // Until the youngest is over its age.
                (None, left) if OF_THE_DEAD.contains(&&**key) => match self.rests() {
                    // Nothing has looked at them yet.
                    Some(false) => true,
                    rests => left.is_some() == rests.is_some(),
                },
                // It depends on when the youngest of the dead died.
                (Some(ttl), Some(left)) if *ttl > DEAD_AGE => (ttl - 60_000..=*ttl).contains(left),
                (Some(ttl), Some(left)) => context.lifetime_matches(*ttl, *left, 1),
                (ttl, left) => ttl.is_none() && left.is_none(),
            };
            if !lives {
                writeln!(text, "  {key}: expected to live {ttl:?} ms, found {left:?} ms").unwrap();
            }
        }
        text
    }
}

/// Names of bodies -> the fields of the tasks that have them. A body that no task has keeps its name.
fn owners(raw: &mut Connection) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for kind in ["q:state", "q:grave"] {
        let fields: BTreeMap<Vec<u8>, Vec<u8>> =
            redis::cmd("HGETALL").arg(real_key(kind, 0)).query(raw).unwrap_or_default();
        for (field, value) in fields {
            let field = String::from_utf8_lossy(&field).replace('\u{1}', "+");
            let is_task = match kind {
                "q:state" => !field.starts_with('\u{2}'),
                _ => field.starts_with('r'),
            };
            if is_task {
                owners.extend(body_of(&value).map(|body| (body, field)));
            }
        }
    }
    owners
}

fn content_matches(expected: &Content, found: &Content, context: &Context) -> bool {
    match (expected, found) {
        (Content::Text(expected), Content::Text(found)) => context.matches(expected, found),
        (Content::Hash(expected), Content::Hash(found)) => {
            let is_there = |(name, value): (&String, &String)| {
                found
                    .iter()
                    .any(|(field, found)| context.matches(name, field) && context.matches(value, found))
            };
            expected.len() == found.len() && expected.iter().all(is_there)
        }
        // The scores tell the order.
        (Content::Zset(expected), Content::Zset(found)) => {
            let is_there = |(name, score): &(String, String)| {
                found.iter().any(|found| context.matches(name, &found.0) && context.matches(score, &found.1))
            };
            expected.len() == found.len() && expected.iter().all(is_there)
        }
        (Content::List, Content::List) => true,
        _ => false,
    }
}

/// What placeholders stand for. Times are the server's, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    pub client: u64,
    pub then: u64,
    pub before: u64,
    pub after: u64,
    pub fence: Option<u64>,
}

impl Context {
    /// The text with every placeholder of a set-up replaced.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        for part in parts(text) {
            match part {
                Part::Plain(text) => filled.push_str(text),
                Part::Holder(holder) => match self.range(holder) {
                    Some((least, most)) if least == most => write!(filled, "{least}").unwrap(),
                    Some(_) => panic!("{{{holder}}} is not known at set-up"),
                    None => filled.push_str(&self.word(holder)),
                },
            }
        }
        filled
    }

    /// Whether `found` is what `expected` stands for.
    pub fn matches(&self, expected: &str, found: &str) -> bool {
        let mut rest = found;
        for part in parts(expected) {
            let word = match part {
                Part::Plain(text) => text.to_owned(),
                Part::Holder(holder) => match self.range(holder) {
                    None => self.word(holder),
                    Some((least, most)) => {
                        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
                        if !rest[..digits].parse().is_ok_and(|number: u64| (least..=most).contains(&number)) {
                            return false;
                        }
                        rest = &rest[digits..];
                        continue;
                    }
                },
            };
            match rest.strip_prefix(&word) {
                Some(left) => rest = left,
                None => return false,
            }
        }
        rest.is_empty()
    }

    pub fn lifetime_matches(&self, ttl: u64, left: u64, pace: u64) -> bool {
        let run = pace * (self.after - self.then) / 1_000 + SLACK_MS;
        left <= ttl && left + run >= ttl
    }

    fn word(&self, holder: &str) -> String {
        match holder {
            "C" => format!("{:x}", self.client),
            holder => secret(holder.strip_prefix('T').and_then(|number| number.parse().ok()).expect(holder)),
        }
    }

    fn range(&self, holder: &str) -> Option<(u64, u64)> {
        let (name, shift) = match holder.find(['+', '-']) {
            Some(at) => (&holder[..at], holder[at..].parse::<i64>().expect(holder)),
            None => (holder, 0),
        };
        let shifted = |time: u64| time.checked_add_signed(shift).expect(holder);
        match name {
            "then" => Some((shifted(self.then / 1_000), shifted(self.then / 1_000))),
            // The same millisecond.
            "then_us" => Some((shifted(self.then / 1_000 * 1_000), shifted(self.then / 1_000 * 1_000))),
            "now" => Some((shifted(self.before / 1_000), shifted(self.after / 1_000))),
            "up" => Some((shifted(self.before.div_ceil(1_000)), shifted(self.after.div_ceil(1_000)))),
            "us" => Some((shifted(self.before), shifted(self.after))),
            "sec" => Some((shifted(self.before / 1_000_000), shifted(self.after / 1_000_000))),
            "fence" => {
                let fence = self.fence.expect("a reply with a fence");
                Some((shifted(fence), shifted(fence)))
            }
            _ if name.contains("..") => {
                let (least, most) = name.split_once("..")?;
                Some((least.parse().expect(holder), most.parse().expect(holder)))
            }
            _ => {
                let most = name.strip_prefix('~')?.parse().expect(holder);
                let run = (self.after - self.then) / 1_000 + SLACK_MS;
                Some((u64::saturating_sub(most, run), most))
            }
        }
    }
}

enum Part<'a> {
    Plain(&'a str),
    Holder(&'a str),
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((plain, tail)) = rest.split_once('{') {
        let (holder, tail) = tail.split_once('}').expect("a placeholder ends");
        parts.extend([Part::Plain(plain), Part::Holder(holder)]);
        rest = tail;
    }
    parts.push(Part::Plain(rest));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context =
        Context { client: 0xab, then: 5_000_000, before: 6_000_000, after: 7_000_000, fence: Some(9) };

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(CONTEXT.fill("{then-100} 0 {C} 7"), "4900 0 ab 7");
        assert_eq!(CONTEXT.fill("{T3}"), secret(3));
    }

    #[test]
    fn patterns_match_only_their_range() {
        assert!(CONTEXT.matches("{now+1} x", "6001 x") && CONTEXT.matches("{now+1} x", "7001 x"));
        assert!(!CONTEXT.matches("{now+1} x", "6000 x") && !CONTEXT.matches("{now+1} x", "7002 x"));
        assert!(!CONTEXT.matches("{now}", "6000 ") && !CONTEXT.matches("{now}", "x"));
        let call = Context { before: 6_000_001, after: 6_000_900, ..CONTEXT };
        assert!(call.matches("{up+1}", "6002") && !call.matches("{up+1}", "6001"));
        assert!(CONTEXT.matches("{fence}", "9") && !CONTEXT.matches("{fence}", "10"));
        assert!(CONTEXT.matches("{~5000}", "3000") && !CONTEXT.matches("{~5000}", "5001"));
        assert!(!CONTEXT.matches("{~5000}", "2000"));
    }

    #[test]
    fn a_record_may_run_twice_as_fast() {
        let differences = |expected: &State, found: &State| expected.differences(found, &CONTEXT);
        let record = |ttl| nothing().meta("fence 1", ttl);
        assert_eq!(differences(&record(10_000), &record(6_000)), "");
        assert_ne!(differences(&record(10_000), &record(5_000)), "");
        let lock = |ttl| nothing().lock("x", ttl);
        assert_eq!(differences(&lock(10_000), &lock(8_000)), "");
        assert_ne!(differences(&lock(10_000), &lock(7_000)), "");
    }

    #[test]
    fn differences_are_found() {
        let expected = nothing().lock("x", 5_000).meta("fence 1", 100);
        let same = expected.clone();
        assert_eq!(expected.differences(&same, &CONTEXT), "");
        for other in [
            nothing().lock("x", 5_000),
            same.clone().lock("y", 5_000),
            same.clone().lock("x", 500),
            same.clone().lock_for_ever("x"),
            same.clone().meta("fence 2", 100),
            same.clone().meta("fence 1, born 1", 100),
            same.clone().ended(1),
            same.with("lock", Content::List, Some(5_000)),
        ] {
            assert_ne!(expected.differences(&other, &CONTEXT), "", "{other:?}");
        }
    }
}
