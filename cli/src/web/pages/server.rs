//! Workers, the store itself, and the search.

use axum::response::{IntoResponse, Redirect};
use maud::html;
use stanchion::{ErrorKind, Health, LockKind};

use crate::queues::is_known;
use crate::web::describe::task_link;
use crate::web::html::{Place, command, empty, shown};
use crate::web::look::handle;
use crate::web::pages::overview::away;
use crate::web::pages::queue::{consumers_table, link};
use crate::web::pages::{Shown, Visit};
use crate::web::problems::lock_link;

/// Queues whose consumers are asked for, at most.
const QUEUES: usize = 50;
/// What a search finds, at most.
const FOUND: usize = 50;

/// Who works, by queue.
pub async fn workers(visit: Visit) -> Shown {
    let look = visit.app.lookout.latest().await;
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    let worked_on = || look.queues.iter().filter(|queue| queue.stats.waiters + queue.stats.claimed > 0);
    for queue in worked_on().take(QUEUES) {
        match visit.app.client.queue(&queue.name).consumers().await {
            Ok(consumers) => found.push((queue.name.clone(), consumers)),
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => return Err(error.into()),
            Err(error) => unreadable.push((&queue.name, error)),
        }
    }
    Ok(visit.page(
        Place::Workers,
        "Workers",
        &html! {
            h1 { "Workers" }
            (away(&look))
            @for (name, error) in &unreadable { p { (shown(name)) " cannot be read: " (shown(&error.to_string())) } }
            @if worked_on().count() > QUEUES { p.soft { "Those of " (QUEUES) " queues; the others say it on their own pages." } }
            @if found.is_empty() && look.error.is_none() {
                (empty("Nobody works on any queue.", &["stanchion", "work", "QUEUE", "--", "command"]))
            }
            @for (name, consumers) in &found {
                h2 { a href=(link(name)) { (shown(name)) } }
                (command(&["stanchion", "queues", "consumers", name]))
                (consumers_table(consumers))
            }
        },
    ))
}

/// What the store is like, and which promises hold on it.
pub async fn server(visit: Visit) -> Shown {
    // To examine the store takes a lock: it is done now and then, and not for each who looks.
    let look = visit.app.lookout.latest().await;
    let findings = &look.findings;
    Ok(visit.page(Place::Server, "Server", &html! {
        h1 { "Server" }
        (command(&["stanchion", "doctor"]))
        @if !visit.reader.can_act { p.soft { "To examine the store takes a lock, so this is left to the command." } }
        @else if findings.is_empty() { p.soft { "The store could not be examined; the command says why." } }
        @else { p.soft { "Examined every five minutes." } }
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "What" } th { "Found" } th { "Promise" } th { "Holds" } } }
                tbody {
                    @for finding in findings {
                        @let class = match finding.health {
                            Health::Good => "tag good",
                            Health::Bad => "tag bad",
                            _ => "tag warn",
                        };
                        tr {
                            td { (finding.what) }
                            td { (shown(&finding.found)) @if let Some(advice) = &finding.advice { br; span.soft { (shown(advice)) } } }
                            td { (finding.promise) }
                            td { span class=(class) { (finding.health.name()) } }
                        }
                    }
                }
            }
        }
    }))
}

/// A queue, a lock or a task of this name.
pub async fn search(visit: Visit) -> Shown {
    let text = visit.asked.q.trim().to_owned();
    if text.is_empty() {
        return Ok(Redirect::to("/").into_response());
    }
    let look = visit.app.lookout.latest().await;
    let mut found: Vec<(&str, String, String)> = Vec::new();
    let named = look.queues.iter().filter(|queue| queue.name.contains(&text)).map(|queue| &queue.name);
    let mut queues: Vec<&String> = named.take(FOUND).collect();
    // One that was not looked at yet.
    if !queues.contains(&&text)
        && visit.app.client.queue(&text).stats().await.is_ok_and(|stats| is_known(&stats))
    {
        queues.push(&text);
    }
    found.extend(queues.into_iter().map(|name| ("queue", name.clone(), link(name))));
    let held = look.locks.iter().filter(|lock| lock.name.contains(&text) && lock.name != text);
    for lock in held.take(FOUND) {
        found.push((lock.kind.name(), lock.name.clone(), lock_link(lock.kind, &lock.name)));
    }
    for kind in LockKind::ALL {
        // A name that is none is no lock's.
        if let Ok(holders) = handle(&visit.app.client, kind, &text).holders().await
            && !holders.is_empty()
        {
            found.push((kind.name(), text.clone(), lock_link(kind, &text)));
        }
    }
    for queue in look.queues.iter().take(QUEUES) {
        if let Ok(Some(task)) = visit.app.client.queue(&queue.name).get(&text).await {
            found.push((
                task.state.name(),
                format!("{} of {}", task.id, queue.name),
                task_link(&queue.name, &task.id),
            ));
        }
    }
    Ok(visit.page(Place::Elsewhere, &format!("Search: {text}"), &html! {
        h1 { "Search: " (shown(&text)) }
        (away(&look))
        @if look.queues.len() > QUEUES { p.soft { "Tasks were looked for in " (QUEUES) " queues; the others have a filter of their own." } }
        @if found.is_empty() {
            p { "No queue or lock that is held has this in its name, and no task has this id." }
        } @else {
            ul { @for (what, name, link) in &found { li { span.tag { (what) } " " a data-row href=(link) { (shown(name)) } } } }
        }
    }))
}
