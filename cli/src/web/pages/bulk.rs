//! Asks before something is done with many tasks: how many those are.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use maud::{Markup, html};
use stanchion::TaskState;

use crate::web::bulk::{Verb, Which, count};
use crate::web::describe::tasks_link;
use crate::web::failing::Failing;
use crate::web::html::{Place, command, encoded, many, shown};
use crate::web::pages::queue::link;
use crate::web::pages::{Names, Shown, Visit};

/// How many a filter means, before anything is done with them.
pub async fn ask(
    visit: Visit,
    Names([name]): Names<1>,
    which: Result<Query<Which>, QueryRejection>,
) -> Shown {
    let Ok(Query(which)) = which else { return Err(Failing::Wrong("This address makes no sense.".into())) };
    let (state, verb) = which.order()?;
    let (count, is_more) = count(&visit.app.client.queue(&name), state, &which).await?;
    let tasks = many(count, &format!("{} task", state.name()), &format!("{} tasks", state.name()));
    Ok(visit.page(Place::Queues, "Are you sure?", &html! {
        h1 { (verb.title()) " " (tasks) @if is_more { " or more" } " of " (shown(&name)) "?" }
        p { @if !which.reason.is_empty() { "Those whose reason begins with " code { (shown(&which.reason)) } ". " }
            @if !which.prefix.is_empty() { "Those whose id begins with " code { (shown(&which.prefix)) } ". " }
            @if !which.key.is_empty() { "Those with the key " code { (shown(&which.key)) } ". " }
            (verb.means()) }
        @if visit.reader.can_act { (form(&name, &which, verb)) }
        p { a href=(format!("{}?state={}", tasks_link(&name), state.name())) { "No, go back" } }
        (equivalent(&name, state, &which, verb))
    }))
}

fn form(name: &str, which: &Which, verb: Verb) -> Markup {
    html! {
        form method="post" action=(format!("{}/bulk", link(name))) {
            @for (field, value) in fields(which, verb) { input type="hidden" name=(field) value=(value); }
            @if verb == Verb::Reschedule {
                label { "Due in " input name="minutes" type="number" min="0" max="525600" value="10" required; " minutes" } " "
            }
            button.danger { (verb.title()) " them" }
        }
    }
}

/// What does the same; for what no command does with many, the one that lists them.
fn equivalent(name: &str, state: TaskState, which: &Which, verb: Verb) -> Markup {
    let mut words = match verb {
        Verb::Kick | Verb::RemoveDead => vec!["stanchion", "queues", verb.name(), name],
        _ => vec!["stanchion", "queues", "list", name, "--state", state.name()],
    };
    if state == TaskState::Dead && !which.reason.is_empty() {
        words.extend(["--reason", &which.reason]);
    }
    if !which.prefix.is_empty() {
        words.extend(["--prefix", &which.prefix]);
    }
    if state == TaskState::Dead && which.reason.is_empty() && which.prefix.is_empty() {
        words.extend(["--older-than", "0"]);
    }
    let lists = words[2] == "list";
    html! { @if lists { p.soft { "No command does this with many; this one lists them:" } } (command(&words)) }
}

fn fields(which: &Which, verb: Verb) -> [(&'static str, &str); 5] {
    let Which { state, prefix, reason, key, .. } = which;
    [("state", state), ("verb", verb.name()), ("prefix", prefix), ("reason", reason), ("key", key)]
}

/// The page that asks.
pub fn bulk_link(name: &str, which: &Which, verb: Verb) -> String {
    let asked = fields(which, verb).map(|(field, value)| format!("{field}={}", encoded(value)));
    format!("{}/bulk?{}", link(name), asked.join("&"))
}
