//! Schedules of a queue.

use maud::{Markup, html};
use stanchion::ScheduleInfo;

use crate::web::describe::task_link;
use crate::web::html::{Place, Reader, age, button, careful, command, empty, moment, number, part, shown};
use crate::web::pages::queue::{link, parts_of};
use crate::web::pages::{Names, Shown, Visit, next_page};

/// Schedules on a page.
const PAGE: usize = 100;

/// All of a queue.
pub async fn list(visit: Visit, Names([name]): Names<1>) -> Shown {
    let page = visit.app.client.queue(&name).list_schedules(visit.asked.from.as_deref(), PAGE).await?;
    Ok(visit.page(Place::Queues, &format!("Schedules of {name}"), &html! {
        h1 { "Schedules of " (shown(&name)) }
        (parts_of(&name, "Schedules"))
        (command(&["stanchion", "schedules", "ls", &name]))
        @if page.schedules.is_empty() {
            (empty("It has none.", &["stanchion", "schedules", "add", &name, "ID", "0 8 * * *"]))
        } @else {
            div.scroll tabindex="0" role="region" aria-label="A table" {
                table {
                    thead { tr { th { "Schedule" } th { "When" } th { "Zone" } th { "Next" } th { "Late" } th.n { "Fired" } th.n { "Missed" } th { "Last task" } th { "" } } }
                    tbody { @for one in &page.schedules { (row(&name, one, &visit.reader)) } }
                }
            }
            (next_page(&format!("{}/schedules", link(&name)), page.next.as_deref(), &[]))
        }
    }))
}

fn row(queue: &str, one: &ScheduleInfo, reader: &Reader) -> Markup {
    let to = |verb: &str| format!("{}/schedules/{}/{verb}", link(queue), part(&one.id));
    html! {
        tr {
            td { (shown(&one.id)) @if one.paused { " " span.tag.warn { "paused" } } }
            td { code { (shown(&one.when)) } }
            td { (shown(&one.tz)) }
            td { @if let Some(next) = one.next { (moment(next)) } @else { "never" } }
            td { @if !one.late.is_zero() { span.tag.bad { (age(one.late)) } } }
            td.n { (number(one.fired)) }
            td.n { (number(one.missed_slots)) }
            td { @if let Some(last) = &one.last_task { a href=(task_link(queue, last)) { (shown(last)) } } }
            td {
                @if one.paused { (button(&to("resume"), "Resume", reader)) } @else { (button(&to("pause"), "Pause", reader)) }
                " " (button(&to("run"), "Run now", reader)) " "
                (careful(&to("remove"), "Remove", "It will make no more tasks.", &["schedules", "rm", queue, &one.id], reader))
            }
        }
    }
}
