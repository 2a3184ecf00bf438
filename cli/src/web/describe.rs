//! Tables and pictures that several pages have.

use std::time::SystemTime;

use maud::{Markup, html};
use stanchion::{QueueStats, TaskInfo, TaskState};

use crate::text::{left, shortened};
use crate::web::failing::Failing;
use crate::web::history::{History, Point};
use crate::web::html::{age, moment, number, part, shown};

/// The size of a picture, in its own units.
const WIDE: usize = 200;
const HIGH: usize = 40;
/// Characters of a text in a table.
const CELL: usize = 60;

/// States whose tasks can be listed.
pub const STATES: [TaskState; 5] =
    [TaskState::Ready, TaskState::Claimed, TaskState::Held, TaskState::Scheduled, TaskState::Dead];

/// The state of this name.
pub fn state_named(name: &str) -> Result<TaskState, Failing> {
    let found = STATES.into_iter().find(|state| state.name() == name);
    found.ok_or_else(|| Failing::Wrong(format!("There is no state {name:?}.")))
}

/// Names and values.
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
    }
}

/// How many tasks a queue has in each state.
pub fn counts(stats: &QueueStats) -> Markup {
    let all = [
        ("ready", stats.ready),
        ("running", stats.claimed),
        ("held by keys", stats.held),
        ("scheduled", stats.scheduled),
        ("after a run", stats.successors),
        ("dead", stats.dead),
        ("free consumers", stats.waiters),
        ("schedules", stats.schedules),
        ("flows", stats.flows),
    ];
    let shown: Vec<_> = all.iter().map(|(name, count)| (*name, html! { (number(*count)) })).collect();
    facts(&shown)
}

/// A line that shows how something has changed; said in words, too.
pub fn line(title: &str, values: &[u64], unit: &str) -> Markup {
    let most = values.iter().copied().max().unwrap_or(0);
    let place = |index: usize, value: u64| {
        let x = index * WIDE / values.len().saturating_sub(1).max(1);
        let y = HIGH as u64 - value.saturating_mul(HIGH as u64 - 2) / most.max(1) - 1;
        format!("{x},{y}")
    };
    let points: Vec<String> = values.iter().enumerate().map(|(index, value)| place(index, *value)).collect();
    let last = values.last().copied().unwrap_or(0);
    let said = format!("{title}: {} {unit} last, {} at most", number(last), number(most));
    html! {
        @if values.len() > 1 {
            svg.spark viewBox=(format!("0 0 {WIDE} {HIGH}")) preserveAspectRatio="none" role="img" aria-label=(said) {
                polyline points=(points.join(" ")) fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" {}
            }
        }
    }
}

/// The same below its title and what it was last.
fn spark(title: &str, values: &[u64], unit: &str) -> Markup {
    html! {
        div {
            div.soft { (title) ": " (number(values.last().copied().unwrap_or(0))) " " (unit) }
            @if values.len() > 1 { (line(title, values, unit)) } @else { p.soft { "The picture begins with the next minutes." } }
        }
    }
}

/// The last hour, and the last day.
pub fn series(history: &History) -> Markup {
    html! {
        @for (day, name, unit) in [(false, "The last hour", "per minute"), (true, "The last day", "per quarter of an hour")] {
            h2 { (name) }
            div.sparks {
                (spark("Came in", &history.rates(day, |point: &Point| point.enqueued), unit))
                (spark("Done", &history.rates(day, |point: &Point| point.acked), unit))
                (spark("Late", &history.points(day).map(|point| point.late).collect::<Vec<_>>(), "s"))
                (spark("Ready", &history.points(day).map(|point| point.ready).collect::<Vec<_>>(), "tasks"))
            }
        }
    }
}

/// Tasks, each with its page.
pub fn tasks(queue: &str, tasks: &[TaskInfo]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "Task" } th { "State" } th.n { "Attempt" } th { "When" } th { "Key" } th { "Last reason" } } }
                tbody {
                    @for task in tasks {
                        tr {
                            td { a data-row href=(task_link(queue, &task.id)) { (shown(&shortened(&task.id, CELL))) } }
                            td { (state(task.state)) }
                            td.n { (task.attempts) " of " (task.max_attempts) }
                            td { (when(task)) }
                            td { @if let Some(key) = &task.key { (shown(&shortened(key, CELL))) } }
                            td { (shown(&shortened(&task.reason, CELL))) }
                        }
                    }
                }
            }
        }
    }
}

/// The page of a queue's tasks.
pub fn tasks_link(queue: &str) -> String {
    format!("/queues/{}/tasks", part(queue))
}

/// The page of a task.
pub fn task_link(queue: &str, id: &str) -> String {
    format!("{}/{}", tasks_link(queue), part(id))
}

/// A state in a word, with its colour.
pub fn state(state: TaskState) -> Markup {
    let class = match state {
        TaskState::Dead => "tag bad",
        TaskState::Claimed => "tag good",
        TaskState::Held => "tag warn",
        _ => "tag",
    };
    html! { span class=(class) { (state_name(state)) } }
}

/// What a state is called on the pages.
pub fn state_name(state: TaskState) -> &'static str {
    if state == TaskState::Claimed { "running" } else { state.name() }
}

/// What of a task's times says most.
fn when(task: &TaskInfo) -> Markup {
    match (task.state, task.died) {
        (TaskState::Dead, Some(died)) => html! { "died " (moment(died)) },
        (TaskState::Claimed, _) => html! { "lease: " (left(task.lease_left)) },
        _ => html! { "due " (moment(task.due)) },
    }
}

/// For how long something has been so.
pub fn since(at: Option<SystemTime>) -> String {
    at.and_then(|at| SystemTime::now().duration_since(at).ok()).map_or_else(|| "-".into(), age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stays_in_its_frame() {
        for values in [vec![], vec![0], vec![0, 0], vec![u64::MAX, 0, 7]] {
            let drawn = line("x", &values, "y").into_string();
            let points =
                drawn.split("points=\"").nth(1).map(|rest| rest.split('"').next().unwrap_or_default());
            for point in points.unwrap_or_default().split(' ').filter(|point| !point.is_empty()) {
                let (x, y) = point.split_once(',').unwrap_or_default();
                assert!(x.parse().is_ok_and(|x: usize| x <= WIDE), "{drawn}");
                assert!(y.parse().is_ok_and(|y: usize| y < HIGH), "{drawn}");
            }
        }
    }
}
