//! Flows of a queue, and what each waits for.

use maud::{Markup, html};
use stanchion::{FlowInfo, FlowState, NodeInfo, NodeState};

use crate::web::describe::task_link;
use crate::web::failing::Failing;
use crate::web::html::{Place, button, careful, command, empty, moment, number, part, shown};
use crate::web::pages::graph::graph;
use crate::web::pages::queue::{link, parts_of};
use crate::web::pages::{Names, Shown, Visit, next_page};

/// Flows on a page, and nodes.
const PAGE: usize = 50;
const NODES: usize = 500;

/// All of a queue, the latest first.
pub async fn list(visit: Visit, Names([name]): Names<1>) -> Shown {
    let page = visit.app.client.queue(&name).list_flows(visit.asked.from.as_deref(), PAGE).await?;
    Ok(visit.page(Place::Queues, &format!("Flows of {name}"), &html! {
        h1 { "Flows of " (shown(&name)) }
        (parts_of(&name, "Flows"))
        (command(&["stanchion", "flows", "ls", &name]))
        @if page.flows.is_empty() {
            (empty("It has none: a program puts flows in with enqueue_flow.", &["stanchion", "flows", "ls", &name]))
        } @else {
            div.scroll tabindex="0" role="region" aria-label="A table" {
                table {
                    thead { tr { th { "Flow" } th { "State" } th { "Nodes" } th { "Put in" } } }
                    tbody {
                        @for flow in &page.flows {
                            tr {
                                td { a data-row href=(flow_link(&name, &flow.id)) { (shown(&flow.id)) } }
                                td { (state(flow.state)) }
                                td { (counts(flow)) }
                                td { (moment(flow.created)) }
                            }
                        }
                    }
                }
            }
            (next_page(&format!("{}/flows", link(&name)), page.next.as_deref(), &[]))
        }
    }))
}

/// One flow.
pub async fn flow(visit: Visit, Names([name, id]): Names<2>) -> Shown {
    let Some(flow) = visit.app.client.queue(&name).get_flow(&id).await? else {
        return Err(Failing::Missing(format!("The queue {name} has no flow {id}.")));
    };
    let to = |verb: &str| format!("{}/{verb}", flow_link(&name, &id));
    Ok(visit.page(Place::Queues, &id, &html! {
        h1 { "Flow " (shown(&id)) " " (state(flow.state)) }
        (parts_of(&name, "Flows"))
        p { (counts(&flow)) ". Put in " (moment(flow.created)) @if let Some(ended) = flow.ended { ", ended " (moment(ended)) } "." }
        (command(&["stanchion", "flows", "show", &name, &id]))
        div.acts {
            @if flow.ended.is_none() {
                (careful(&to("cancel"), "Cancel", "What has not begun does not run any more, but for what comes in any case.", &["flows", "cancel", &name, &id], &visit.reader))
            } @else if flow.state != FlowState::Done {
                (button(&to("retry"), "Retry what did not succeed", &visit.reader))
            }
        }
        @match graph(&flow.nodes) {
            Some(graph) => (graph),
            None => p.soft { "It has too many nodes for a picture." },
        }
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "Node" } th { "State" } th { "Queue" } th { "After" } } }
                tbody { @for node in flow.nodes.iter().take(NODES) { (row(&name, &id, node)) } }
            }
        }
        @if flow.nodes.len() > NODES { p.soft { "The first " (NODES) " of " (flow.nodes.len()) " nodes." } }
    }))
}

fn row(home: &str, flow: &str, node: &NodeInfo) -> Markup {
    let queue = node.queue.as_deref().unwrap_or(home);
    let after = node.after.iter().map(|other| shown(other));
    let after = after.chain(node.after_end.iter().map(|other| format!("{} (its end)", shown(other))));
    let after = after.chain(node.after_failure.iter().map(|other| format!("{} (its failure)", shown(other))));
    let mut after: Vec<String> = after.collect();
    after.extend(node.after_all.map(|all| format!("all ({all})")));
    let is_there = matches!(node.state, NodeState::Put | NodeState::Dead);
    html! {
        tr {
            td {
                @if is_there { a data-row href=(task_link(queue, &format!("{flow}/{}", node.name))) { (shown(&node.name)) } }
                @else { (shown(&node.name)) }
            }
            td { (node_state(node.state)) }
            td { @if queue != home { a href=(link(queue)) { (shown(queue)) } } }
            td { (after.join(", ")) }
        }
    }
}

fn counts(flow: &FlowInfo) -> String {
    let counts = flow.counts.iter().filter(|(_, count)| *count > 0);
    counts
        .map(|(state, count)| format!("{} {}", number((*count).into()), state.name()))
        .collect::<Vec<_>>()
        .join(", ")
}

fn state(state: FlowState) -> Markup {
    let class = match state {
        FlowState::Done => "tag good",
        FlowState::Running => "tag",
        _ => "tag bad",
    };
    html! { span class=(class) { (state.name()) } }
}

fn node_state(state: NodeState) -> Markup {
    let class = match state {
        NodeState::Done => "tag good",
        NodeState::Dead => "tag bad",
        state if state.has_ended() => "tag warn",
        _ => "tag",
    };
    html! { span class=(class) { (state.name()) } }
}

/// The page of a flow.
pub fn flow_link(queue: &str, id: &str) -> String {
    format!("{}/flows/{}", link(queue), part(id))
}
