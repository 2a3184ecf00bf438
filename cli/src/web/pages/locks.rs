//! Locks of every kind: who holds them, since when, and who waits.

use maud::{Markup, html};
use stanchion::{ErrorKind, LockKind};

use crate::text::left;
use crate::web::describe::since;
use crate::web::failing::Failing;
use crate::web::html::{Place, Reader, age, command, empty, moment, number, shown};
use crate::web::look::{LockLook, handle};
use crate::web::pages::{Names, Shown, Visit, next_page};
use crate::web::problems::{holder_name, lock_link};

/// Locks on a page at most.
const PAGE: usize = 100;

/// The locks of one kind.
pub async fn list(visit: Visit) -> Shown {
    let asked = visit.asked.kind.as_deref().unwrap_or(LockKind::Exclusive.name());
    let kind = kind(asked)?;
    let from = visit.asked.from.as_deref().and_then(|from| from.parse().ok());
    let page = visit.app.client.locks_of(kind, from).await?;
    let (mut looks, mut unreadable) = (Vec::new(), Vec::new());
    for name in page.names.iter().take(PAGE) {
        match handle(&visit.app.client, kind, name).holders().await {
            Ok(holders) if holders.is_empty() => {}
            Ok(holders) => looks.push(LockLook::new(kind, name.clone(), holders)),
            // The store's own trouble is everybody's.
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => return Err(error.into()),
            Err(error) => unreadable.push((name, error)),
        }
    }
    let next = page.next.map(|next| next.to_string());
    Ok(visit.page(Place::Locks, "Locks", &html! {
        h1 { "Locks" }
        p { @for other in LockKind::ALL {
            a href=(format!("/locks?kind={}", other.name())) aria-current=[(other == kind).then_some("true")] { (other.name()) } " "
        } }
        (command(&["stanchion", "locks", "ls"]))
        @for (name, error) in &unreadable {
            p { a data-row href=(lock_link(kind, name)) { (shown(name)) } " cannot be read: " (shown(&error.to_string())) }
        }
        @if looks.is_empty() {
            (empty("Nobody holds one of this kind, as far as was looked.", &["stanchion", "run", "NAME", "--", "command"]))
        } @else {
            (table(looks.iter()))
            @if page.names.len() > PAGE {
                h2 { "More names" }
                ul { @for name in page.names.iter().skip(PAGE) { li { a data-row href=(lock_link(kind, name)) { (shown(name)) } } } }
            }
        }
        (next_page("/locks", next.as_deref(), &[("kind", asked)]))
    }))
}

/// One lock.
pub async fn lock(visit: Visit, Names([asked, name]): Names<2>) -> Shown {
    let kind = kind(&asked)?;
    let lock = handle(&visit.app.client, kind, &name);
    let (holders, waiters) = (lock.holders().await?, lock.waiters().await?);
    Ok(visit.page(Place::Locks, &name, &html! {
        h1 { "Lock " (shown(&name)) " " span.tag { (kind.name()) } }
        (command(&["stanchion", "locks", "show", &name]))
        @if holders.is_empty() { p { "It is free." } }
        @else {
            h2 { "Held by" }
            div.scroll tabindex="0" role="region" aria-label="A table" {
                table {
                    thead { tr { th { "Who" } th { "As" } th { "Since" } th { "Lease" } th.n { "Fence" } th.n { "Weight" } } }
                    tbody {
                        @for holder in &holders {
                            tr {
                                td { (holder_name(holder)) }
                                td { (holder.held_as.name()) }
                                td { @if let Some(since) = holder.since { (moment(since)) } @else { "-" } }
                                td { (holder.remaining.map_or_else(|| "without an end".into(), left)) }
                                td.n { (holder.fence) }
                                td.n { (holder.weight) }
                            }
                        }
                    }
                }
            }
            (break_it(kind, &name, &visit.reader))
        }
        h2 { "The line" }
        @if waiters.is_empty() { p.soft { "Nobody waits." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="A table" {
                table {
                    thead { tr { th.n { "Place" } th { "Label" } th { "Host" } th.n { "Process" } th { "Has waited" } } }
                    tbody {
                        @for (place, waiter) in (1..).zip(&waiters) {
                            tr {
                                td.n { (number(place)) } td { (shown(&waiter.label)) } td { (shown(&waiter.host)) }
                                td.n { (waiter.pid) } td { (waiter.waiting.map_or_else(|| "-".into(), age)) }
                            }
                        }
                    }
                }
            }
        }
    }))
}

/// Locks, each with its page.
pub fn table<'a>(locks: impl Iterator<Item = &'a LockLook>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="A table" {
            table {
                thead { tr { th { "Lock" } th { "Kind" } th { "Held by" } th { "For" } th.n { "Waiting" } th.n { "Fence" } } }
                tbody {
                    @for lock in locks {
                        @let first = lock.holders.first();
                        tr {
                            td { a data-row href=(lock_link(lock.kind, &lock.name)) { (shown(&lock.name)) } }
                            td { (lock.kind.name()) }
                            td {
                                (first.map(holder_name).unwrap_or_default())
                                @if lock.holders.len() > 1 { " and " (lock.holders.len() - 1) " more" }
                            }
                            td { (since(first.and_then(|first| first.since))) }
                            td.n { (number(lock.waiters())) }
                            td.n { @if let Some(first) = first { (first.fence) } }
                        }
                    }
                }
            }
        }
    }
}

/// The kind of this name.
pub fn kind(name: &str) -> Result<LockKind, Failing> {
    let found = LockKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| Failing::Missing(format!("There is no kind of lock {name:?}.")))
}

/// Whoever breaks a lock types its name.
fn break_it(kind: LockKind, name: &str, reader: &Reader) -> Markup {
    html! {
        @if reader.can_act {
            details.careful {
                summary { "Break" }
                form method="post" action=(format!("{}/break", lock_link(kind, name))) {
                    p { "Its holder loses it, and may still be at work: what it protects must check the fence." }
                    label { "Type the name to break it: " input name="typed" autocomplete="off" required; } " "
                    button.danger { "Break" }
                }
            }
            (command(&["stanchion", "locks", "break", name]))
        }
    }
}
