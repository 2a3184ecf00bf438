//! Tasks: lists by state, the dead, and one task.

use maud::{Markup, html};
use stanchion::{TaskInfo, TaskState};

use crate::text::{left, shortened};
use crate::web::bulk::{Verb, Which, matching};
use crate::web::describe::{STATES, facts, state, state_name, state_named, tasks, tasks_link};
use crate::web::failing::Failing;
use crate::web::html::{
    Place, Reader, button, careful, command, empty, many, moment, number, part, shown, who,
};
use crate::web::pages::bulk::bulk_link;
use crate::web::pages::queue::{link, parts_of};
use crate::web::pages::{Asked, Names, Shown, Visit, next_page};

/// Tasks on a page.
const PAGE: usize = 50;
/// Characters of a payload.
const PAYLOAD: usize = 16_384;
/// Tasks in one state, and what can be done with them.
pub async fn list(visit: Visit, Names([name]): Names<1>) -> Shown {
    let asked = visit.asked.state.clone().unwrap_or_else(|| TaskState::Ready.name().into());
    in_state(&visit, &name, state_named(&asked)?).await
}

/// The dead.
pub async fn dead(visit: Visit, Names([name]): Names<1>) -> Shown {
    in_state(&visit, &name, TaskState::Dead).await
}

async fn in_state(visit: &Visit, name: &str, of: TaskState) -> Shown {
    let Asked { prefix, reason, key, from, .. } = visit.asked.clone();
    let which = Which { state: of.name().into(), prefix, reason, key, ..Which::default() };
    let (found, next) = matching(&visit.app.client.queue(name), of, &which, from, PAGE).await?;
    let path = tasks_link(name);
    let listed = ["stanchion", "queues", "list", name, "--state", of.name()];
    Ok(visit.page(Place::Queues, &format!("Tasks of {name}"), &html! {
        h1 { @if of == TaskState::Dead { "Dead tasks of " } @else { "Tasks of " } (shown(name)) }
        (parts_of(name, if of == TaskState::Dead { "Dead" } else { "Tasks" }))
        p { @for other in STATES {
            a href=(format!("{path}?state={}", other.name())) aria-current=[(other == of).then_some("true")] { (state_name(other)) } " "
        } }
        (filter(&path, &which))
        (command(&listed))
        @if found.is_empty() {
            @if next.is_none() { (nothing(name, &which, of)) }
            @else { p.soft { "None among those that were looked at." } }
        } @else {
            (tasks(name, &found))
            @if visit.reader.can_act {
                p.acts { @for verb in Verb::of(of) {
                    a href=(bulk_link(name, &which, verb)) { (verb.title()) " all of these\u{2026}" }
                } }
            }
        }
        (next_page(&path, next.as_deref(), &[("state", of.name()), ("prefix", &which.prefix), ("reason", &which.reason), ("key", &which.key)]))
    }))
}

/// One task.
pub async fn task(visit: Visit, Names([name, id]): Names<2>) -> Shown {
    let found = visit.app.client.queue(&name).get(&id).await?;
    let Some(task) = found else {
        return Err(Failing::Missing(format!("The queue {name} has no task {id}.")));
    };
    Ok(visit.page(Place::Queues, &format!("{id}, {name}"), &html! {
        h1 { "Task " (shown(&id)) " of " (shown(&name)) " " (state(task.state)) }
        (parts_of(&name, ""))
        (task_facts(&name, &task))
        (command(&["stanchion", "queues", "get", &name, &id]))
        @match visit.app.notes.removal_of(&name, &id).filter(|_| task.state == TaskState::Dead) {
            Some(number) => p { "It will be removed within a minute. " (button(&format!("/undo/{number}"), "Undo", &visit.reader)) },
            None => (actions(&name, &task, &visit.reader)),
        }
        @if !task.failures.is_empty() {
            h2 { "How it failed" }
            ul { @for failure in task.failures.iter().rev() { li { (moment(failure.at)) ": " (shown(&failure.reason)) } } }
        }
        @if !task.progress.is_empty() {
            h2 { "Progress" }
            pre { (shown(&String::from_utf8_lossy(&task.progress))) }
        }
        h2 { "Payload" }
        (payload(&task, visit.app.show_payloads))
    }))
}

/// What a list without any says.
fn nothing(name: &str, which: &Which, of: TaskState) -> Markup {
    let is_filtered = !(which.prefix.is_empty() && which.reason.is_empty() && which.key.is_empty());
    let fits = if is_filtered { " that fits" } else { "" };
    let what = format!("No task{fits} is {}.", state_name(of));
    match of {
        TaskState::Ready if !is_filtered => empty(&what, &["stanchion", "enqueue", name, "ID"]),
        _ => html! { p.soft { (what) } },
    }
}

fn filter(path: &str, which: &Which) -> Markup {
    html! {
        form method="get" action=(path) {
            input type="hidden" name="state" value=(which.state);
            label { "Id begins with " input name="prefix" value=(which.prefix); } " "
            label { "reason begins with " input name="reason" value=(which.reason); } " "
            label { "key is " input name="key" value=(which.key); } " "
            button { "Show" }
        }
    }
}

fn task_facts(queue: &str, task: &TaskInfo) -> Markup {
    let mut all = vec![
        ("attempt", html! { (task.attempts) " of " (task.max_attempts) }),
        ("due", moment(task.due)),
        ("priority", html! { (task.priority) }),
        ("version", html! { (task.version) }),
        ("payload", html! { (many(task.size, "byte", "bytes")) }),
    ];
    let mut add = |name, value: Option<Markup>| all.extend(value.map(|value| (name, value)));
    add("died", task.died.map(moment));
    add(
        "key",
        task.key.as_ref().map(|key| html! { a href=(format!("{}/keys", link(queue))) { (shown(key)) } }),
    );
    add("kind", task.kind.as_ref().map(|kind| html! { (shown(kind)) }));
    add("run by", task.claimed_by.as_ref().map(|by| html! { (who(&by.label, &by.host, by.pid)) }));
    add("lease left", (task.state == TaskState::Claimed).then(|| html! { (left(task.lease_left)) }));
    add("expires", task.expires.map(moment));
    add("timeout", task.timeout.map(|timeout| html! { (left(timeout)) }));
    add("asked to end", task.cancelled.then(|| html! { "yes" }));
    add("again", task.successor_due.map(moment));
    add("receipt", (task.receipt.get() > 0).then(|| html! { (number(task.receipt.get())) }));
    html! {
        (facts(&all))
        @if !task.reason.is_empty() { p { "Last reason: " (shown(&task.reason)) } }
    }
}

fn actions(queue: &str, task: &TaskInfo, reader: &Reader) -> Markup {
    let to = |verb: &str| format!("{}/tasks/{}/{verb}", link(queue), part(&task.id));
    html! {
        div.acts {
            @match task.state {
                TaskState::Dead => {
                    (button(&to("kick"), "Kick", reader))
                    (careful(&to("remove-dead"), "Remove", "It goes in a minute, unless you undo it.", &["queues", "remove-dead", queue, &task.id], reader))
                    (command(&["stanchion", "queues", "kick", queue, &task.id]))
                }
                TaskState::Claimed => {
                    (careful(&to("cancel"), "Cancel", "Its run is told to end, and it is not tried again.", &["queues", "cancel", queue, &task.id], reader))
                }
                _ => {
                    (button(&to("run-now"), "Run now", reader))
                    (careful(&to("remove"), "Remove", "It goes at once.", &["queues", "remove", queue, &task.id], reader))
                    @if reader.can_act {
                        form.act method="post" action=(to("reschedule")) {
                            label { "Due in " input name="minutes" type="number" min="0" max="525600" value="10" required; " minutes" } " "
                            button { "Reschedule" }
                        }
                    }
                }
            }
        }
    }
}

/// What it carries, if that may be shown.
fn payload(task: &TaskInfo, shows: bool) -> Markup {
    html! {
        @if !shows {
            p.soft { (many(task.size, "byte", "bytes")) ". Payloads are shown if the dashboard is started with " code { "--show-payloads" } "." }
        } @else {
            @if let Ok(text) = std::str::from_utf8(&task.payload) {
                pre { (shortened(text, PAYLOAD).lines().map(shown).collect::<Vec<_>>().join("\n")) }
            } @else {
                p.soft { "It is no text." }
            }
            @for (name, value) in task.headers.iter() { p { code { (shown(name)) } ": " (shown(value)) } }
        }
    }
}
