//! `stanchion queues`: what is in the queues, and looking after them.

pub mod counts;
mod events;
mod keys;
mod tasks;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use stanchion::blocking::{Client, Queue};
use stanchion::{
    Cancelled, DeadTasks, ListOptions, QueueConfig, QueueSettings, QueueStats, Receipt, Removed, Task,
    TaskResult, Version,
};

use crate::arguments::{ConfigureOrder, DeadOrder, Globals, QueuesVerb};
use crate::exit;
use crate::failure::Failure;
use crate::output::{print, print_done};
use crate::report::Report;
use crate::store;
use crate::text::plain;

/// Most tasks that one request may concern.
const MOST: usize = 1_000;

/// Carries out one of the verbs.
pub fn perform(verb: &QueuesVerb, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    check(verb)?;
    let client = store::open(globals, report)?;
    let queue = |name: &str| client.queue(name);
    let json = globals.json;
    if let Some(name) = named(verb).filter(|_| !json) {
        tell_if_unknown(name, &queue(name).stats()?, report);
    }
    match verb {
        QueuesVerb::Ls => show(&list_queues(&client, json)?),
        QueuesVerb::Stats { queue: name } => show(&counts::described(name, &queue(name).stats()?, json)),
        QueuesVerb::Consumers { queue: name } => show(&counts::consumers(&queue(name).consumers()?, json)),
        QueuesVerb::Peek { count, queue: name } => {
            let mut listing = tasks::Listing::new(json);
            queue(name).peek(*count)?.iter().for_each(|task| listing.add(task));
            show(&listing.text())
        }
        QueuesVerb::List { state, count, prefix, no_payloads, queue: name } => {
            let options = ListOptions::new((*state).into()).prefix(prefix).payloads(!no_payloads);
            tasks::list(&queue(name), options, count.unwrap_or(usize::MAX), json)
        }
        QueuesVerb::Get { queue: name, id } => match queue(name).get(id)? {
            Some(task) => show(&tasks::described(&task, json)),
            None => Err(no_task(name, id, "there is no such task, and no dead one is remembered")),
        },
        QueuesVerb::Kick(order) => {
            let queue = queue(&order.queue);
            swept(&queue, order, "kicked", queue.kick(dead_tasks(order))?, json)
        }
        QueuesVerb::RemoveDead(order) => {
            let queue = queue(&order.queue);
            swept(&queue, order, "removed", queue.remove_dead(dead_tasks(order))?, json)
        }
        QueuesVerb::Remove { version, queue: name, id } => {
            remove(&queue(name), id, version.map(Version::new), json)
        }
        QueuesVerb::Cancel { queue: name, id } => cancel(&queue(name), id, json),
        QueuesVerb::Result { wait, version, queue: name, id } => {
            result(&queue(name), id, version.map(Version::new), wait.unwrap_or_default(), json)
        }
        QueuesVerb::Events(order) => events::events(&queue(&order.queue), order, report, json),
        QueuesVerb::Keys { queue: name } => keys::list(&queue(name), json),
        QueuesVerb::Key(order) => keys::key(&queue(&order.queue), order, json),
        QueuesVerb::Pause { queue: name } => pause(&queue(name), true, json),
        QueuesVerb::Resume { queue: name } => pause(&queue(name), false, json),
        QueuesVerb::Purge { queue: name, .. } => {
            let dropped = queue(name).purge()?;
            told(json, &json!({ "queue": name, "dropped": dropped }), &format!("{dropped} tasks dropped"))
        }
        QueuesVerb::Configure(order) => configure(&queue(&order.queue), order, json),
    }
}

/// What can be known to be wrong before the store is opened.
fn check(verb: &QueuesVerb) -> Result<(), Failure> {
    let ids = match verb {
        QueuesVerb::Get { id, .. }
        | QueuesVerb::Remove { id, .. }
        | QueuesVerb::Cancel { id, .. }
        | QueuesVerb::Result { id, .. } => std::slice::from_ref(id),
        QueuesVerb::Kick(DeadOrder { ids, .. }) | QueuesVerb::RemoveDead(DeadOrder { ids, .. }) => ids,
        QueuesVerb::Key(order) if Task::auto().key(&order.key).check().is_err() => {
            let what = "a key has 1 to 512 bytes, and no control characters";
            return Err(Failure::usage(what, "give another one"));
        }
        QueuesVerb::Purge { yes: false, queue } => {
            let what = format!("purge would drop every task of {:?}, live and dead", plain(queue));
            return Err(Failure::usage(what, "add --yes if that is meant"));
        }
        QueuesVerb::List { count: Some(0), .. } => {
            return Err(Failure::usage("--count 0 lists nothing", "give a larger number"));
        }
        _ => &[],
    };
    Ok(ids.iter().try_for_each(|id| Task::new(id).check())?)
}

/// The queue that a verb is about. One of a single task says itself that there is none.
fn named(verb: &QueuesVerb) -> Option<&str> {
    match verb {
        QueuesVerb::Ls
        | QueuesVerb::Get { .. }
        | QueuesVerb::Remove { .. }
        | QueuesVerb::Cancel { .. }
        | QueuesVerb::Result { .. } => None,
        QueuesVerb::Stats { queue }
        | QueuesVerb::Consumers { queue }
        | QueuesVerb::Peek { queue, .. }
        | QueuesVerb::List { queue, .. }
        | QueuesVerb::Keys { queue }
        | QueuesVerb::Pause { queue }
        | QueuesVerb::Resume { queue }
        | QueuesVerb::Purge { queue, .. } => Some(queue),
        QueuesVerb::Kick(order) | QueuesVerb::RemoveDead(order) => Some(&order.queue),
        QueuesVerb::Events(order) => Some(&order.queue),
        QueuesVerb::Configure(order) => Some(&order.queue),
        QueuesVerb::Key(order) => Some(&order.queue),
    }
}

/// Whether a queue has, or had, or is something.
pub fn is_known(stats: &QueueStats) -> bool {
    let QueueStats { ready, claimed, scheduled, held, successors, dead, enqueued, schedules, .. } = stats;
    let counts = [ready, claimed, scheduled, held, successors, dead, enqueued, schedules];
    counts.into_iter().any(|count| *count > 0) || stats.paused || stats.settings != QueueSettings::default()
}

/// A name that is misspelt looks like an empty queue, and may be paused or configured like one. Programs that ask see the
/// zeros.
fn tell_if_unknown(name: &str, stats: &QueueStats, report: &Report) {
    if !is_known(stats) {
        report.note(&format!(
            "there is no queue {name:?}: nothing was put into it, or not for 7 days; see `stanchion queues ls`"
        ));
    }
}

fn show(text: &str) -> Result<u8, Failure> {
    print(text.as_bytes())?;
    Ok(exit::DONE)
}

/// What was done.
pub fn told(json: bool, fields: &serde_json::Value, text: &str) -> Result<u8, Failure> {
    let text = if json { fields.to_string() } else { text.to_owned() };
    print_done(format!("{text}\n").as_bytes(), "it was done")?;
    Ok(exit::DONE)
}

fn no_task(queue: &str, id: &str, what: &str) -> Failure {
    let what = format!("task {:?} of {:?}: {what}", plain(id), plain(queue));
    Failure::new("NoTask", exit::NO_TASK, what, "look with `stanchion queues list`")
}

fn list_queues(client: &Client, json: bool) -> Result<String, Failure> {
    let stats = names(client)?.into_iter().map(|name| Ok((client.queue(&name).stats()?, name)));
    Ok(counts::overview(&stats.collect::<Result<Vec<_>, Failure>>()?, json))
}

/// All names, sorted; pages may repeat some.
pub fn names(client: &Client) -> Result<BTreeSet<String>, Failure> {
    let (mut names, mut page) = (BTreeSet::new(), None);
    loop {
        let listed = client.queue_names(page)?;
        names.extend(listed.names);
        page = listed.next;
        if page.is_none() {
            return Ok(names);
        }
    }
}

fn dead_tasks(order: &DeadOrder) -> DeadTasks {
    let dead = match order.count {
        Some(count) => DeadTasks::oldest(count),
        None if !order.ids.is_empty() => DeadTasks::ids(&order.ids),
        None if !order.receipts.is_empty() => {
            DeadTasks::receipts(order.receipts.iter().copied().map(Receipt::new))
        }
        None => DeadTasks::all(),
    };
    let (reason, prefix) = (order.reason.as_deref(), order.prefix.as_deref());
    dead.reason(reason.unwrap_or_default())
        .prefix(prefix.unwrap_or_default())
        .older_than(order.older_than.unwrap_or_default())
}

/// What became of the dead tasks that were named.
fn swept(queue: &Queue, order: &DeadOrder, verb: &str, count: u64, json: bool) -> Result<u8, Failure> {
    let given = BTreeSet::from_iter(&order.ids).len() + BTreeSet::from_iter(&order.receipts).len();
    told(json, &json!({ "queue": queue.name(), verb: count }), &format!("{count} tasks {verb}"))?;
    if usize::try_from(count).is_ok_and(|count| count < given) {
        let others = if verb == "kicked" { "no dead task, or a live one" } else { "no dead task" };
        let what =
            format!("{count} of {given} {verb}: the others have {others}, or are left out by an option");
        return Err(Failure::new(
            "NoTask",
            exit::NO_TASK,
            what,
            format!("look with `stanchion queues list {:?} --state dead`", queue.name()),
        ));
    }
    Ok(exit::DONE)
}

fn remove(queue: &Queue, id: &str, version: Option<Version>, json: bool) -> Result<u8, Failure> {
    match queue.remove(id, version)? {
        Removed::Removed => {
            let fields = json!({ "queue": queue.name(), "id": id, "removed": true });
            told(json, &fields, &format!("{} removed", plain(id)))
        }
        Removed::OtherVersion(version) => {
            Err(no_task(queue.name(), id, &format!("it has version {version} now, and was not removed")))
        }
        _ => Err(no_task(queue.name(), id, "there is no such live task")),
    }
}

fn cancel(queue: &Queue, id: &str, json: bool) -> Result<u8, Failure> {
    let (outcome, text) = match queue.cancel(id)? {
        Cancelled::Removed => ("removed", "removed: it was not worked on"),
        Cancelled::Running => ("running", "is being worked on: it ends with this run"),
        _ => return Err(no_task(queue.name(), id, "there is no such live task")),
    };
    told(
        json,
        &json!({ "queue": queue.name(), "id": id, "outcome": outcome }),
        &format!("{} {text}", plain(id)),
    )
}

fn result(
    queue: &Queue,
    id: &str,
    version: Option<Version>,
    wait: Duration,
    json: bool,
) -> Result<u8, Failure> {
    match queue.result(id, version, wait)? {
        TaskResult::Done { result, version, .. } if json => {
            let (text, base64) = tasks::text_or_base64(&result);
            let fields = json!({
                "queue": queue.name(), "id": id, "version": version.get(), "result": text, "result_base64": base64,
            });
            show(&format!("{fields}\n"))
        }
        TaskResult::Done { result, .. } => {
            print(&result)?;
            Ok(exit::DONE)
        }
        TaskResult::Pending => {
            let what = format!("{:?} is not done yet", plain(id));
            Err(Failure::new("Pending", exit::BUSY, what, "wait for it with --wait SECS"))
        }
        TaskResult::Dead { reason, .. } => {
            Err(no_task(queue.name(), id, &format!("it is dead: {}", plain(&reason))))
        }
        _ => Err(no_task(
            queue.name(),
            id,
            "it was done without a result, or removed, or is not known any more",
        )),
    }
}

fn pause(queue: &Queue, paused: bool, json: bool) -> Result<u8, Failure> {
    if paused {
        queue.pause()?;
    } else {
        queue.resume()?;
    }
    let text = if paused { "paused: tasks are not given out until it is resumed" } else { "gives out tasks" };
    let name = queue.name();
    told(json, &json!({ "queue": name, "paused": paused }), &format!("{} {text}", plain(name)))
}

fn configure(queue: &Queue, order: &ConfigureOrder, json: bool) -> Result<u8, Failure> {
    let mut settings = QueueConfig::new();
    if let Some(limit) = order.max_len {
        settings = settings.max_len(limit.0);
    }
    if let Some(count) = order.dead_max {
        settings = settings.dead_max(count);
    }
    if let Some(age) = order.dead_age {
        settings = settings.dead_age(age);
    }
    if let Some(bytes) = order.dead_bytes {
        settings = settings.dead_bytes(bytes);
    }
    if let Some(intake) = order.intake {
        settings = settings.intake(intake);
    }
    if let Some(count) = order.events {
        settings = settings.events(count);
    }
    if let Some(limit) = order.max_running {
        settings = settings.max_running(limit.0);
    }
    if let Some(limit) = order.rate {
        settings = settings.rate(limit.0.map(|rate| keys::with_burst(rate, order.burst)));
    }
    if let Some(limit) = order.key_concurrency {
        settings = settings.key_concurrency(limit.0.and_then(|most| u32::try_from(most).ok()));
    }
    if let Some(limit) = order.key_rate {
        settings = settings.key_rate(limit.0.map(|rate| keys::with_burst(rate, order.key_burst)));
    }
    queue.configure(settings)?;
    show(&counts::settings(&queue.stats()?.settings, json))
}
