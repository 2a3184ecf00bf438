//! A queue: why it does not move, what it has, what was before.

use std::time::SystemTime;

use maud::{Markup, html};
use stanchion::{Gate, KeyInfo, ListOptions, TaskState};

use crate::queues::is_known;
use crate::text::left;
use crate::web::describe::{counts, facts, series, since, tasks, tasks_link};
use crate::web::failing::Failing;
use crate::web::html::{
    Place, Reader, button, careful, clock, command, empty, encoded, many, number, part, shown,
};
use crate::web::look::QueueLook;
use crate::web::pages::{Names, Shown, Visit, next_page};
use crate::web::problems::cause;

/// Tasks, consumers and keys that a queue's page shows.
const FIRST: usize = 10;
/// Keys on a page of theirs.
const KEYS: usize = 100;

/// The page of a queue.
pub async fn queue(visit: Visit, Names([name]): Names<1>) -> Shown {
    let queue = visit.app.client.queue(&name);
    let stats = queue.stats().await?;
    if !is_known(&stats) && stats.waiters == 0 {
        return Err(Failing::Missing(format!("There is no queue {name}.")));
    }
    let ready = ListOptions::new(TaskState::Ready).payloads(false).max(FIRST);
    let first = queue.list(ready).await?.tasks;
    let consumers = queue.consumers().await?;
    let look = visit.app.lookout.latest().await;
    let known = look.queues.iter().find(|queue| queue.name == name);
    let seen = QueueLook {
        name: name.clone(),
        stats: stats.clone(),
        due_since: first.first().map(|first| first.due),
        tried: None,
        dead: Vec::new(),
        history: known.map(|known| known.history.clone()).unwrap_or_default(),
    };
    let of_queue: Vec<_> = look
        .problems
        .iter()
        .filter(|problem| problem.link.starts_with(&format!("{}/", link(&name))))
        .collect();
    Ok(visit.page(
        Place::Queues,
        &name,
        &html! {
            h1 { "Queue " (shown(&name)) }
            (parts_of(&name, "Queue"))
            @if !of_queue.is_empty() {
                ul.problems { @for problem in of_queue { li class=(problem.class()) { a href=(problem.link) { (problem.text) } } } }
            }
            (moves(&seen))
            (counts(&stats))
            (command(&["stanchion", "queues", "stats", &name]))
            (actions(&name, stats.paused, &visit.reader))
            h2 { "First in line" }
            @if first.is_empty() {
                (empty("Nothing is due.", &["stanchion", "enqueue", &name, "ID"]))
            } @else {
                (tasks(&name, &first))
                p { a href=(format!("{}/tasks", link(&name))) { "All tasks" } }
            }
            h2 { "Consumers" }
            @if consumers.is_empty() {
                (empty("Nobody works on it.", &["stanchion", "work", &name, "--", "command"]))
            } @else {
                (consumers_table(&consumers))
            }
            h2 { "Limits" }
            (limits(&seen))
            (series(&seen.history))
        },
    ))
}

/// The keys that hold tasks, or have limits.
pub async fn keys(visit: Visit, Names([name]): Names<1>) -> Shown {
    let queue = visit.app.client.queue(&name);
    let page = queue.list_keys(visit.asked.from.as_deref(), KEYS).await?;
    let all = queue.stats().await?.settings.key_concurrency;
    Ok(visit.page(Place::Queues, &format!("Keys of {name}"), &html! {
        h1 { "Keys of " (shown(&name)) }
        (parts_of(&name, "Keys"))
        (command(&["stanchion", "queues", "keys", &name]))
        @if page.keys.is_empty() {
            (empty("No key holds tasks, and none has limits of its own.", &["stanchion", "enqueue", &name, "ID", "--key", "KEY"]))
        } @else {
            (keys_table(&name, &page.keys, all))
            (next_page(&format!("{}/keys", link(&name)), page.next.as_deref(), &[]))
        }
    }))
}

/// The page of a queue.
pub fn link(name: &str) -> String {
    format!("/queues/{}", part(name))
}

/// The pages about parts of a queue; `here` is the title of the one that this is.
pub fn parts_of(name: &str, here: &str) -> Markup {
    let of = [
        ("", "Queue"),
        ("/tasks", "Tasks"),
        ("/dead", "Dead"),
        ("/keys", "Keys"),
        ("/schedules", "Schedules"),
        ("/flows", "Flows"),
    ];
    html! {
        nav.parts aria-label="Parts of the queue" {
            @for (path, title) in of {
                a href=(format!("{}{path}", link(name))) aria-current=[(title == here).then_some("page")] { (title) }
            }
        }
    }
}

/// Whether what is due is given out, and if not, why.
fn moves(seen: &QueueLook) -> Markup {
    let stats = &seen.stats;
    let says = match (stats.ready, stats.held) {
        (0, 0) => "Nothing waits to be given out.".to_owned(),
        (0, held) => format!("{} held by the limits of their keys.", many(held, "task is", "tasks are")),
        (ready, _) => format!(
            "{} due, the first for {}: {}.",
            many(ready, "task is", "tasks are"),
            since(seen.due_since),
            cause(seen)
        ),
    };
    html! { p { (says) } }
}

fn actions(name: &str, paused: bool, reader: &Reader) -> Markup {
    let to = |verb: &str| format!("{}/{verb}", link(name));
    html! {
        div.acts {
            @if paused {
                (button(&to("resume"), "Resume", reader))
                (command(&["stanchion", "queues", "resume", name]))
            } @else {
                (careful(&to("pause"), "Pause", "No task will be given out until it is resumed. What runs goes on.", &["queues", "pause", name], reader))
            }
        }
    }
}

fn limits(seen: &QueueLook) -> Markup {
    let (stats, now) = (&seen.stats, SystemTime::now());
    let settings = &stats.settings;
    let rate = |rate: Option<stanchion::Rate>| match rate {
        Some(rate) => html! { (number(rate.count.into())) " per " (left(rate.per)) },
        None => html! { "none" },
    };
    let most = |most: Option<u64>| html! { (most.map_or_else(|| "none".into(), number)) };
    let gate = match stats.gate {
        Gate::Open => "open".to_owned(),
        Gate::Rate(opens) | Gate::Throttled(opens) => {
            format!("{} until {}", stats.gate.name(), clock(now + opens))
        }
        gate => gate.name().replace('_', " "),
    };
    facts(&[
        ("gate", html! { (gate) }),
        ("runs at once", most(settings.max_running)),
        ("rate", rate(settings.rate)),
        ("of each key at once", most(settings.key_concurrency.map(u64::from))),
        ("rate of each key", rate(settings.key_rate)),
        ("tasks at most", most(settings.max_len)),
    ])
}

/// Those who wait for tasks, or have some.
pub fn consumers_table(consumers: &[stanchion::Consumer]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "Label" } th { "Host" } th.n { "Process" } th.n { "Waiting" } th.n { "Running" } } }
                tbody {
                    @for one in consumers {
                        tr {
                            td { (shown(&one.label)) } td { (shown(&one.host)) } td.n { (one.pid) }
                            td.n { (number(one.waiters)) } td.n { (number(one.claims)) }
                        }
                    }
                }
            }
        }
    }
}

fn keys_table(queue: &str, keys: &[KeyInfo], all: Option<u32>) -> Markup {
    let tasks = |key: &str, state: TaskState, count: u64| {
        let link = format!("{}?state={}&key={}", tasks_link(queue), state.name(), encoded(key));
        html! { @if count > 0 { a href=(link) { (number(count)) } } @else { "0" } }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "Key" } th.n { "Running" } th.n { "In line" } th.n { "Held" } th.n { "At once" } th { "May go on" } } }
                tbody {
                    @for key in keys {
                        tr {
                            @let most = key.limits.as_ref().and_then(|own| own.concurrency).or(all);
                            td { (shown(&key.key)) }
                            td.n { (tasks(&key.key, TaskState::Claimed, key.running)) }
                            td.n { (tasks(&key.key, TaskState::Ready, key.in_line)) }
                            td.n { (tasks(&key.key, TaskState::Held, key.held)) }
                            td.n { (most.map_or_else(|| "any".into(), |most| number(most.into()))) }
                            td { (goes_on(key, most)) }
                        }
                    }
                }
            }
        }
    }
}

/// When more of a key may come into line.
fn goes_on(key: &KeyInfo, most: Option<u32>) -> String {
    match (key.opens_in, most) {
        (Some(opens), _) => clock(SystemTime::now() + opens),
        (None, Some(most)) if key.held > 0 && key.running >= most.into() => {
            "when one of its runs ends".into()
        }
        (None, _) if key.held > 0 => "when one of its own leaves the line".into(),
        (None, _) => "now".into(),
    }
}
