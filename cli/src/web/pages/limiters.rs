//! Limiters that something was taken of.

use maud::html;
use stanchion::LimitKind;

use crate::text::left;
use crate::web::failing::Failing;
use crate::web::html::{Place, command, empty, shown};
use crate::web::pages::{Shown, Visit, next_page};

/// Those of one kind, a page at a time.
pub async fn list(visit: Visit) -> Shown {
    let asked = visit.asked.kind.as_deref().unwrap_or(LimitKind::Gcra.name());
    let kind = LimitKind::ALL.into_iter().find(|kind| kind.name() == asked);
    let kind = kind.ok_or_else(|| Failing::Missing(format!("There is no kind of limiter {asked:?}.")))?;
    let from = visit.asked.from.as_deref().and_then(|from| from.parse().ok());
    let mut page = visit.app.client.limiters(kind, from).await?;
    // The one that is used up for longest is the one that somebody waits for.
    page.limiters.sort_by_key(|one| std::cmp::Reverse(one.idle_in));
    let next = page.next.map(|next| next.to_string());
    Ok(visit.page(Place::Limiters, "Limiters", &html! {
        h1 { "Limiters" }
        p { @for other in LimitKind::ALL {
            a href=(format!("/limiters?kind={}", other.name())) aria-current=[(other == kind).then_some("true")] { (other.name()) } " "
        } }
        (command(&["stanchion", "limiters"]))
        @if page.limiters.is_empty() {
            (empty("Nothing was taken of one of this kind lately.", &["stanchion", "limit", "NAME", "--rate", "10/s", "--", "command"]))
        } @else {
            div.scroll tabindex="0" role="region" aria-label="A table" {
                table {
                    thead { tr { th { "Limiter" } th.n { (if kind == LimitKind::Gcra { "Used up ahead for" } else { "Window ends in" }) } } }
                    tbody { @for one in &page.limiters { tr { td { (shown(&one.name)) } td.n { (left(one.idle_in)) } } } }
                }
            }
        }
        (next_page("/limiters", next.as_deref(), &[("kind", asked)]))
    }))
}
