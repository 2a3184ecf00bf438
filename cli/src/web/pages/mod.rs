//! The pages.

pub mod bulk;
pub mod flows;
pub mod graph;
pub mod limiters;
pub mod locks;
pub mod overview;
pub mod queue;
pub mod schedules;
pub mod server;
pub mod tasks;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::web::App;
use crate::web::failing::Failing;
use crate::web::html::{Place, Reader, name_of, page, shown};

/// What every page may be asked with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The number of a note.
    pub note: Option<u64>,
    /// Where a list goes on.
    pub from: Option<String>,
    /// What ids begin with.
    pub prefix: String,
    /// What reasons begin with.
    pub reason: String,
    /// Which key tasks have.
    pub key: String,
    /// A state's name.
    pub state: Option<String>,
    /// A kind's name.
    pub kind: Option<String>,
    /// What is looked for.
    pub q: String,
}

/// What a page is made from.
pub struct Visit {
    pub app: Arc<App>,
    pub reader: Reader,
    pub asked: Asked,
}

/// A page, or why there is none.
pub type Shown = Result<Response, Failing>;

impl FromRequestParts<Arc<App>> for Visit {
    type Rejection = Failing;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failing> {
        app.lookout.ask();
        let wrong = || Failing::Wrong("This address makes no sense.".into());
        let Query(asked) = Query::from_request_parts(parts, app).await.map_err(|_| wrong())?;
        let reader = parts.extensions.get::<Reader>().cloned().ok_or_else(wrong)?;
        Ok(Self { app: Arc::clone(app), reader, asked })
    }
}

/// The names in a path, as they were.
pub struct Names<const N: usize>(pub [String; N]);

impl<const N: usize> FromRequestParts<Arc<App>> for Names<N> {
    type Rejection = Failing;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failing> {
        let wrong = || Failing::Wrong("This address makes no sense.".into());
        let found =
            Path::<Vec<(String, String)>>::from_request_parts(parts, app).await.map_err(|_| wrong())?;
        let names: Vec<String> = found.0.into_iter().map(|(_, part)| name_of(part)).collect();
        Ok(Self(names.try_into().map_err(|_| wrong())?))
    }
}

impl Visit {
    /// The page, with the note that led here.
    pub fn page(&self, place: Place, title: &str, main: &Markup) -> Response {
        page(place, title, Some(&self.reader), self.note(), main)
    }

    fn note(&self) -> Option<Markup> {
        let number = self.asked.note?;
        let note = self.app.notes.get(number)?;
        Some(html! {
            span class=(if note.is_bad { "bad" } else { "" }) { (shown(&note.text)) }
            @if note.goes_on { " \u{2026}" }
            @if note.undo_until.is_some() {
                " "
                form.act method="post" action=(format!("/undo/{number}")) { button { "Undo" } }
            }
        })
    }
}

/// The address of what comes next in a list.
pub fn next_page(path: &str, next: Option<&str>, asked: &[(&str, &str)]) -> Markup {
    html! {
        @if let Some(next) = next {
            form method="get" action=(path) {
                input type="hidden" name="from" value=(next);
                @for (name, value) in asked {
                    @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                }
                button { "More" }
            }
        }
    }
}
