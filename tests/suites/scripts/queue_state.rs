//! What is stored of a queue: tables name only what differs from a plain task.
//!
//! A plain task has version 1, due 1, max_attempts 20, first 1 and the body `b`, which has the size 1.

use std::collections::BTreeMap;

use stanchion::internals::queue_name;
use stanchion::store::redis::code::{FLOW_FIELDS, NODE_FIELDS, SCHEDULE_FIELDS, TASK_FIELDS};

use crate::packed;
use crate::queue_case::LEASE;
use crate::state::{Content, DEAD_AGE, QUEUE_REFRESH, QUEUE_WEEK, State};

/// How long the reply to a call is kept.
pub const CALL_TTL: u64 = 60_000;
/// How long the results of the tests are kept, and a second.
pub const RESULT: u64 = 10_000;
/// How long an idle consumer is registered.
pub const IDLE: u64 = 7_500;
/// The fields of a plain task.
const PLAIN: &str = "version 1, due 1, max_attempts 20, first 1, size 1";

/// The key in the store; `q:KIND` stands for a queue's.
pub fn real_key(name: &str, client: u64) -> String {
    let Some(kind) = name.strip_prefix("q:") else { return name.to_owned() };
    let queue = queue_name("q").unwrap();
    match kind.split_once(' ') {
        Some((kind, slot)) => format!("stanchion:{kind}:{{{}}}:{client:x}:{slot}", queue.key()),
        None if kind == "intake" => queue.key().to_owned(),
        None => format!("stanchion:{kind}:{{{}}}", queue.key()),
    }
}

/// The other way.
pub fn shown_key(key: &str) -> String {
    let queue = queue_name("q").unwrap();
    if key == queue.key() {
        return "q:intake".into();
    }
    let Some((kind, rest)) = key.split_once(&format!(":{{{}}}", queue.key())) else { return key.to_owned() };
    let kind = kind.strip_prefix("stanchion:").expect("a sidecar");
    match rest.rsplit_once(':') {
        Some((_, slot)) => format!("q:{kind} {slot}"),
        None => format!("q:{kind}"),
    }
}

/// The turn of a ready task.
pub fn turn(priority: u64, sequence: u64) -> String {
    ((255 - priority) * (1 << 45) + sequence).to_string()
}

/// A plain task with these fields.
fn task(fields: &str, more: &str) -> String {
    in_order(&[PLAIN, fields, more])
}

fn of_schedule(texts: &[&str]) -> String {
    among(SCHEDULE_FIELDS, texts)
}

pub fn of_flow(texts: &[&str]) -> String {
    among(FLOW_FIELDS, texts)
}

pub fn of_node(texts: &[&str]) -> String {
    among(NODE_FIELDS, texts)
}

fn in_order(texts: &[&str]) -> String {
    among(TASK_FIELDS, texts)
}

/// The text of all fields that are not zero, in order; later ones count.
fn among(fields: &[(&str, usize)], texts: &[&str]) -> String {
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    for field in texts.iter().flat_map(|text| text.split(", ")).filter(|text| !text.is_empty()) {
        let (name, value) = field.split_once(' ').expect("a field has a value");
        values.insert(name, value);
    }
    // Some places have another name in a dead record.
    let mut fields = fields.to_vec();
    fields.sort_by_key(|(_, place)| *place);
    let names: Vec<_> = fields.iter().map(|(name, _)| name.to_lowercase()).collect();
    let text = packed::text(names.iter().filter_map(|name| Some((&**name, *values.get(&**name)?))));
    let unknown: Vec<_> = values.keys().filter(|name| !names.iter().any(|known| known == *name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    text
}

fn value<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix(' '))
}

impl State {
    pub fn hash(mut self, kind: &str, field: &str, value: &str) -> Self {
        let entry = self.0.entry(format!("q:{kind}")).or_insert((Content::Hash(BTreeMap::new()), None));
        let Content::Hash(fields) = &mut entry.0 else { panic!("{kind} is no hash") };
        fields.insert(field.to_owned(), value.to_owned());
        self
    }

    pub fn zset(mut self, kind: &str, member: &str, score: &str, ttl: Option<u64>) -> Self {
        let entry = self.0.entry(format!("q:{kind}")).or_insert((Content::Zset(Vec::new()), ttl));
        let Content::Zset(members) = &mut entry.0 else { panic!("{kind} is no set") };
        members.push((member.to_owned(), score.to_owned()));
        entry.1 = ttl;
        self
    }

    /// Counts as "counter 5, sequence 1"; the record lives as long as tasks do.
    pub fn counts(self, fields: &str) -> Self {
        self.hash("queue", "counts", fields)
    }

    pub fn settings(self, fields: &str) -> Self {
        self.hash("queue", "settings", fields)
    }

    /// The record of a queue that nothing is left of.
    pub fn resting(mut self) -> Self {
        let has_dead = ["q:dead", "q:expired"].iter().any(|key| self.0.contains_key(*key));
        let life = if has_dead { DEAD_AGE + 1_000 + QUEUE_REFRESH } else { QUEUE_WEEK };
        self.0.get_mut("q:queue").expect("a record").1 = Some(life);
        self
    }

    /// A task in line; each has a later place than the one before.
    pub fn ready(self, id: &str, sequence: u64, fields: &str) -> Self {
        let priority = value(fields, "priority").map_or(0, |priority| priority.parse().unwrap());
        self.ready_at(id, &turn(priority, sequence), fields)
    }

    pub fn ready_at(self, id: &str, turn: &str, fields: &str) -> Self {
        self.stored(id, fields).zset("ready", id, turn, None)
    }

    pub fn scheduled(self, id: &str, due: &str, fields: &str) -> Self {
        self.stored(id, &format!("due {due}{}{fields}", if fields.is_empty() { "" } else { ", " })).zset(
            "scheduled",
            id,
            due,
            None,
        )
    }

    pub fn claimed(self, id: &str, ends: &str, fields: &str) -> Self {
        self.stored(id, fields).zset("claimed", id, ends, None)
    }

    /// Its main is to have `has_successor 1`.
    pub fn successor(self, id: &str, fields: &str) -> Self {
        self.stored(&format!("+{id}"), fields)
    }

    fn stored(self, field: &str, fields: &str) -> Self {
        self.hash("state", field, &task(fields, "")).hash("body", field, "b")
    }

    pub fn body(self, field: &str, body: &str) -> Self {
        self.sized(field, body.len()).hash("body", field, body)
    }

    /// As a task of the intake is stored.
    pub fn no_body(self, field: &str) -> Self {
        self.sized(field, 0).bare(field)
    }

    /// As a dead record of an entry of the intake is stored.
    pub fn no_dead_body(mut self, field: &str) -> Self {
        let Some((Content::Hash(graves), _)) = self.0.get_mut("q:grave") else { panic!("no dead") };
        let fields = graves.get_mut(field).expect("a dead record");
        *fields = fields.replace(", size 1", "");
        self.bare(field)
    }

    fn bare(mut self, field: &str) -> Self {
        let Some((Content::Hash(bodies), _)) = self.0.get_mut("q:body") else { panic!("no bodies") };
        bodies.remove(field).expect("a body");
        if bodies.is_empty() {
            self.0.remove("q:body");
        }
        self
    }

    fn sized(mut self, field: &str, size: usize) -> Self {
        let Some((Content::Hash(tasks), _)) = self.0.get_mut("q:state") else { panic!("no tasks") };
        let fields = tasks.get_mut(field).expect("a task");
        *fields = in_order(&[fields, &format!("size {size}")]);
        self
    }

    /// A dead record with the body `b`; also the id's newest one.
    pub fn dead(self, receipt: &str, id: &str, died: &str, fields: &str) -> Self {
        self.older_dead(receipt, id, died, fields).hash("grave", &format!("i{id}"), receipt)
    }

    /// A dead record of a task that expired.
    pub fn expired(self, receipt: &str, id: &str, died: &str, fields: &str) -> Self {
        let mut state = self.dead(receipt, id, died, fields);
        let Some((Content::Zset(dead), _)) = state.0.get_mut("q:dead") else { panic!("no dead") };
        let (receipt, died) = dead.pop().expect("it is there");
        if dead.is_empty() {
            state.0.remove("q:dead");
        }
        state.zset("expired", &receipt, &died, None)
    }

    /// Two records of one id, one after the other.
    pub fn chained(self, older: &str, newer: &str) -> Self {
        self.hash("grave", &format!("o{newer}"), older).hash("grave", &format!("n{older}"), newer)
    }

    /// A dead record that is not the id's newest one.
    pub fn older_dead(self, receipt: &str, id: &str, died: &str, fields: &str) -> Self {
        let more = format!("receipt {receipt}, died_at {died}, id {id}");
        let fields = task(&more, fields);
        self.zset("dead", receipt, died, None).hash("grave", &format!("r{receipt}"), &fields).hash(
            "body",
            &format!("r{receipt}"),
            "b",
        )
    }

    /// A result that is kept until then, for nine seconds at most.
    pub fn result(self, id: &str, ends: &str, fields: &str) -> Self {
        let mut state = self.hash("result", id, fields).zset("results", id, ends, Some(RESULT));
        state.0.get_mut("q:result").expect("a result").1 = Some(RESULT);
        state
    }

    /// The bytes of all results.
    pub fn results_size(self, bytes: usize) -> Self {
        self.hash("result", "", &bytes.to_string())
    }

    /// A schedule that nobody has fired yet, of tasks with the body `b`.
    pub fn schedule(self, id: &str, due: &str, fields: &str) -> Self {
        let fields = of_schedule(&[
            "serial 30, timing T, missed last, task_options 0 20 0 k0, body_size 1",
            &format!("next {due}"),
            fields,
        ]);
        self.hash("schedules", id, &fields)
            .hash("schedules", &format!("+{id}"), "b")
            .zset("agenda", id, due, None)
    }

    /// An owner's list of schedules.
    pub fn owns(self, owner: &str, list: &str) -> Self {
        self.hash("schedules", &format!("={owner}"), list)
    }

    /// What the queue, or each of its keys, lets go at most. Of one that had tasks with keys it is empty.
    pub fn limits(self, fields: &str) -> Self {
        self.hash("queue", "limits", fields)
    }

    /// What is known of a key.
    pub fn key(self, key: &str, fields: &str) -> Self {
        self.hash("keys", key, fields)
    }

    /// A task that its key holds.
    pub fn held_by_key(self, id: &str, key: &str, sequence: u64, fields: &str) -> Self {
        let priority = value(fields, "priority").map_or(0, |priority| priority.parse().unwrap());
        let member = format!("{key}\u{1}{:0>16}{id}", turn(priority, sequence));
        let fields = in_order(&[&format!("key {key}"), fields]);
        self.stored(id, &fields).zset("held", &member, "0", None)
    }

    /// When more of a key may come into line.
    pub fn key_waits(self, key: &str, until: &str) -> Self {
        self.zset("key-waits", key, until, None)
    }

    /// Limits that a key has of its own.
    pub fn own_limits(self, key: &str, limits: &str) -> Self {
        self.zset("key-limits", &format!("{key}\u{1}{limits}"), "0", None)
    }

    /// What the record says of schedules.
    pub fn agenda(self, first_due: &str, count: usize) -> Self {
        self.hash("queue", "agenda", &format!("first_due {first_due}, count {count}"))
    }

    /// The queue keeps events; the last one had this number.
    pub fn watched(self, kept: u64, last: u64) -> Self {
        self.hash("queue", "events", &format!("events_kept {kept}, last_event {last}"))
    }

    pub fn intake(self, id: &str, score: &str) -> Self {
        self.zset("intake", id, score, None)
    }

    pub fn window(self, id: &str, ends: &str, ttl: u64) -> Self {
        self.zset("window", id, ends, Some(ttl))
    }

    /// A waiter of this client, which does not say who it is.
    pub fn idle(self, seq: u64, until: &str) -> Self {
        self.zset("idle", &format!("{{C}} {seq} "), until, Some(IDLE))
    }

    /// A waiter of this client, of a consumer that says who it is.
    pub fn idle_of(self, consumer: &str, seq: u64, until: &str) -> Self {
        self.zset("idle", &format!("{{C}} {seq} {consumer}"), until, Some(IDLE))
    }

    /// The last call of slot 0.
    pub fn call(self, reply: &str) -> Self {
        // What was given can be given again for as long as its lease lasts.
        let gave = reply.contains(": [[") && !reply.contains(": [[]");
        let life = if gave { CALL_TTL + LEASE } else { CALL_TTL };
        self.with_key("q:call 0", Content::Text(reply.to_owned()), Some(life))
    }

    pub fn with_key(mut self, key: &str, content: Content, ttl: Option<u64>) -> Self {
        self.0.insert(key.to_owned(), (content, ttl));
        self
    }
}
