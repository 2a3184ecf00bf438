//! What is wrong now; then what there is.

use maud::{Markup, html};

use crate::web::describe::{line, since};
use crate::web::html::{Place, age as age_of, command, empty, many, number, part, shown};
use crate::web::look::{Look, QueueLook};
use crate::web::pages::locks::table;
use crate::web::pages::{Shown, Visit};
use crate::web::problems::Problem;

/// Problems, queues and locks on the first page.
const PROBLEMS: usize = 50;
const QUEUES: usize = 30;
const LOCKS: usize = 20;

/// The first page.
pub async fn overview(visit: Visit) -> Shown {
    let look = visit.app.lookout.latest().await;
    Ok(visit.page(Place::Overview, "What is wrong now", &html! {
        h1 { "What is wrong now" }
        (wrong(&look))
        h2 { "Queues" }
        @if look.error.is_none() { (queues(&look.queues, QUEUES)) }
        @if look.queues.len() > QUEUES || look.more_queues { p { a href="/queues" { "All queues" } } }
        h2 { "Locks" }
        @if look.error.is_some() {
        } @else if look.locks.is_empty() {
            (empty("Nobody holds a lock. Run something under one:", &["stanchion", "run", "NAME", "--", "command"]))
        } @else {
            (table(look.locks.iter().take(LOCKS)))
            @if look.locks.len() > LOCKS { p { a href="/locks" { "All locks" } } }
        }
    }))
}

/// All queues.
pub async fn all_queues(visit: Visit) -> Shown {
    let look = visit.app.lookout.latest().await;
    Ok(visit.page(
        Place::Queues,
        "Queues",
        &html! {
            h1 { "Queues" }
            (command(&["stanchion", "queues", "ls"]))
            (away(&look))
            @if look.error.is_none() { (queues(&look.queues, usize::MAX)) }
            @if look.more_queues { p.soft { "There are more, which are not known yet; search for one by its whole name." } }
        },
    ))
}

fn wrong(look: &Look) -> Markup {
    html! {
        @if look.error.is_some() || look.at.is_none() {
            (away(look))
        } @else if look.problems.is_empty() {
            p.good-news { (all_is_well(look)) }
        } @else {
            ul.problems { @for problem in look.problems.iter().take(PROBLEMS) { (told(problem)) } }
            @if look.problems.len() > PROBLEMS {
                p.soft { "And " (many((look.problems.len() - PROBLEMS) as u64, "thing", "things")) " more." }
            }
        }
    }
}

/// Why nothing is known now, if so.
pub fn away(look: &Look) -> Markup {
    html! {
        @if let Some(error) = &look.error {
            ul.problems { li.bad { span.of { "The store" } " cannot be looked at: " (shown(&error.to_string())) } }
        } @else if look.at.is_none() {
            ul.problems { li.bad { span.of { "The dashboard" } " has not seen the store yet, which is slow." } }
        } @else if let Some(age) = look.age() {
            p.soft { "As it was " (age_of(age)) " ago: the store is slow." }
        }
    }
}

fn all_is_well(look: &Look) -> String {
    let queues = many(look.queues.len() as u64, "queue", "queues");
    let locks = many(look.locks.len() as u64, "lock is", "locks are");
    if look.more_queues {
        return format!("All is well as far as was looked: {queues} of more, nothing is late; {locks} held.");
    }
    format!("All is well: {queues}, nothing is late; {locks} held.")
}

fn told(problem: &Problem) -> Markup {
    let words: Vec<&str> = problem.command.iter().map(String::as_str).collect();
    html! {
        li class=(problem.class()) {
            a.of data-row href=(problem.link) { (shown(&problem.of)) } ": " (problem.text)
            (command(&words))
        }
    }
}

fn queues(queues: &[QueueLook], most: usize) -> Markup {
    if queues.is_empty() {
        return empty(
            "There is no queue yet. Put a task into one:",
            &["stanchion", "enqueue", "QUEUE", "ID"],
        );
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead {
                    tr {
                        th { "Queue" } th { "State" } th.n { "Ready" } th.n { "Running" } th.n { "Held" }
                        th.n { "Scheduled" } th.n { "Dead" } th.n { "Late" } th.n { "Free consumers" } th.n { "Done, last hour" } th { "By minute" }
                    }
                }
                tbody {
                    @for queue in queues.iter().take(most) {
                        @let stats = &queue.stats;
                        tr {
                            td { a data-row href=(format!("/queues/{}", part(&queue.name))) { (shown(&queue.name)) } }
                            td { @if stats.paused { span.tag.warn { "paused" } } @else { span.tag { "active" } } }
                            @for count in [stats.ready, stats.claimed, stats.held, stats.scheduled, stats.dead] {
                                td.n { (number(count)) }
                            }
                            td.n { @if stats.ready > 0 { (since(queue.due_since)) } @else { "-" } }
                            td.n { (number(stats.waiters)) }
                            @let done = queue.history.rates(false, |point| point.acked);
                            td.n { (number(done.iter().sum())) }
                            td { (line("Done, last hour", &done, "per minute")) }
                        }
                    }
                }
            }
        }
    }
}
