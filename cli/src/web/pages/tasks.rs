//! Tasks: lists by state, the dead, and one task.

use maud::{Markup, html};
use stanchion::{ListOptions, TaskInfo, TaskState};

use crate::text::{left, shortened};
use crate::web::describe::{facts, state, tasks};
use crate::web::failing::Failing;
use crate::web::html::{
    Place, Reader, button, careful, command, empty, encoded, many, moment, number, part, shown, who,
};
use crate::web::pages::queue::{link, parts_of};
use crate::web::pages::{Names, Shown, Visit, next_page};

/// Tasks on a page.
const PAGE: usize = 50;
/// Dead tasks that a count looks at, at most.
const COUNTED: usize = 10_000;
/// Characters of a payload.
const PAYLOAD: usize = 16_384;
/// Those of a list that can be asked for.
const STATES: [TaskState; 5] =
    [TaskState::Ready, TaskState::Claimed, TaskState::Held, TaskState::Scheduled, TaskState::Dead];

/// Tasks in one state.
pub async fn list(visit: Visit, Names([name]): Names<1>) -> Shown {
    let asked = visit.asked.state.as_deref().unwrap_or("ready");
    let of = STATES.into_iter().find(|state| state.name() == asked);
    let of = of.ok_or_else(|| Failing::Wrong(format!("There is no state {asked:?}.")))?;
    let mut options = ListOptions::new(of).payloads(false).max(PAGE).prefix(visit.asked.prefix.as_str());
    if let Some(from) = &visit.asked.from {
        options = options.page(from.as_str());
    }
    let page = visit.app.client.queue(&name).list(options).await?;
    let path = format!("{}/tasks", link(&name));
    Ok(visit.page(Place::Queues, &format!("Tasks of {name}"), &html! {
        h1 { "Tasks of " (shown(&name)) }
        (parts_of(&name))
        p { @for other in STATES {
            a href=(format!("{path}?state={}", other.name())) aria-current=[(other == of).then_some("true")] { (other.name()) } " "
        } }
        (by_prefix(&path, &visit.asked.prefix, &[("state", asked)]))
        (command(&["stanchion", "queues", "list", &name, "--state", asked]))
        @if page.tasks.is_empty() {
            @if page.next.is_none() { (empty("There is none.", &["stanchion", "enqueue", &name, "ID"])) }
            @else { p.soft { "None among those that were looked at." } }
        } @else { (tasks(&name, &page.tasks)) }
        (next_page(&path, page.next.as_deref(), &[("state", asked), ("prefix", &visit.asked.prefix)]))
    }))
}

/// The dead, and what can be done with them.
pub async fn dead(visit: Visit, Names([name]): Names<1>) -> Shown {
    let asked = &visit.asked;
    let (found, next) = matching(&visit, &name, asked.from.clone(), PAGE).await?;
    let path = format!("{}/dead", link(&name));
    Ok(visit.page(Place::Queues, &format!("Dead tasks of {name}"), &html! {
        h1 { "Dead tasks of " (shown(&name)) }
        (parts_of(&name))
        form method="get" action=(path) {
            label { "Reason begins with " input name="reason" value=(asked.reason); } " "
            label { "id begins with " input name="prefix" value=(asked.prefix); } " "
            button { "Show" }
        }
        (command(&["stanchion", "queues", "list", &name, "--state", "dead"]))
        @if found.is_empty() {
            @if next.is_none() { (empty("No task of this queue is dead.", &["stanchion", "queues", "list", &name, "--state", "dead"])) }
            @else { p.soft { "None among those that were looked at." } }
        } @else {
            (tasks(&name, &found))
            @if visit.reader.can_act {
                p.acts {
                    @for (verb, title) in [("kick", "Kick all of these\u{2026}"), ("remove", "Remove all of these\u{2026}")] {
                        a href=(bulk_link(&path, verb, &asked.reason, &asked.prefix)) { (title) }
                    }
                }
            }
        }
        (next_page(&path, next.as_deref(), &[("reason", &asked.reason), ("prefix", &asked.prefix)]))
    }))
}

/// How many a filter means, before anything is done with them.
pub async fn bulk(visit: Visit, Names([name]): Names<1>) -> Shown {
    let asked = &visit.asked;
    let verb = asked.verb.as_deref().filter(|verb| ["kick", "remove"].contains(verb));
    let verb = verb.ok_or_else(|| Failing::Wrong("There is nothing of the kind to be done.".into()))?;
    let (mut count, mut from, mut looked) = (0, None, 0);
    loop {
        let (found, next) = matching(&visit, &name, from, 1_000).await?;
        count += found.len() as u64;
        looked += 1_000;
        from = next;
        if from.is_none() || looked >= COUNTED {
            break;
        }
    }
    let more = if from.is_some() { "or more" } else { "" };
    let means = if verb == "kick" {
        "They will be ready again, with all their attempts."
    } else {
        "They will be gone for good."
    };
    Ok(visit.page(Place::Queues, "Are you sure?", &html! {
        h1 { (if verb == "kick" { "Kick" } else { "Remove" }) " " (many(count, "dead task", "dead tasks")) " " (more) " of " (shown(&name)) "?" }
        p { @if !asked.reason.is_empty() { "Those whose reason begins with " code { (shown(&asked.reason)) } ". " }
            @if !asked.prefix.is_empty() { "Those whose id begins with " code { (shown(&asked.prefix)) } ". " }
            (means) }
        @if visit.reader.can_act {
            form method="post" action=(format!("{}/dead/{verb}", link(&name))) {
                input type="hidden" name="reason" value=(asked.reason);
                input type="hidden" name="prefix" value=(asked.prefix);
                button.danger { (if verb == "kick" { "Kick them" } else { "Remove them" }) }
            }
        }
        p { a href=(format!("{}/dead", link(&name))) { "No, go back" } }
        (command(&["stanchion", "queues", if verb == "kick" { "kick" } else { "remove-dead" }, &name, "--reason", &asked.reason, "--prefix", &asked.prefix]))
    }))
}

/// One task.
pub async fn task(visit: Visit, Names([name, id]): Names<2>) -> Shown {
    let found = visit.app.client.queue(&name).get(&id).await?;
    let Some(task) = found else {
        return Err(Failing::Missing(format!("The queue {name} has no task {id}.")));
    };
    Ok(visit.page(Place::Queues, &id, &html! {
        h1 { "Task " (shown(&id)) " " (state(task.state)) }
        (parts_of(&name))
        (task_facts(&name, &task))
        (command(&["stanchion", "queues", "get", &name, &id]))
        (actions(&name, &task, &visit.reader))
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

async fn matching(
    visit: &Visit,
    name: &str,
    from: Option<String>,
    most: usize,
) -> Result<(Vec<TaskInfo>, Option<String>), Failing> {
    let mut options =
        ListOptions::new(TaskState::Dead).payloads(false).max(most).prefix(visit.asked.prefix.as_str());
    if let Some(from) = from {
        options = options.page(from);
    }
    let page = visit.app.client.queue(name).list(options).await?;
    let reason = &visit.asked.reason;
    Ok((page.tasks.into_iter().filter(|task| task.reason.starts_with(reason.as_str())).collect(), page.next))
}

fn by_prefix(path: &str, prefix: &str, others: &[(&str, &str)]) -> Markup {
    html! {
        form method="get" action=(path) {
            @for (name, value) in others { input type="hidden" name=(name) value=(value); }
            label { "Id begins with " input name="prefix" value=(prefix); } " "
            button { "Show" }
        }
    }
}

fn bulk_link(path: &str, verb: &str, reason: &str, prefix: &str) -> String {
    format!("{path}/bulk?verb={verb}&reason={}&prefix={}", encoded(reason), encoded(prefix))
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
                    (careful(&to("remove-dead"), "Remove", "It goes in a minute, unless you undo it.", reader))
                    (command(&["stanchion", "queues", "kick", queue, &task.id]))
                }
                TaskState::Claimed => {
                    (careful(&to("cancel"), "Cancel", "Its run is told to end, and it is not tried again.", reader))
                    (command(&["stanchion", "queues", "cancel", queue, &task.id]))
                }
                _ => {
                    (button(&to("run-now"), "Run now", reader))
                    (careful(&to("remove"), "Remove", "It goes at once.", reader))
                    @if reader.can_act {
                        form.act method="post" action=(to("reschedule")) {
                            label { "Due in " input name="minutes" type="number" min="0" max="525600" value="10" required; " minutes" } " "
                            button { "Reschedule" }
                        }
                    }
                    (command(&["stanchion", "queues", "remove", queue, &task.id]))
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
