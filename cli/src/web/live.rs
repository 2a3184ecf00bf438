//! Tells browsers that there is something new to see.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};

use crate::web::App;

/// A proxy in between takes a connection that is silent for dead.
const ALIVE: Duration = Duration::from_secs(15);

/// An event with each look. Pages ask for themselves again then.
pub async fn live(State(app): State<Arc<App>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let looks = app.lookout.watch();
    let events = stream::unfold((app, looks), |(app, mut looks)| async move {
        looks.changed().await.ok()?;
        app.lookout.ask();
        let away = looks.borrow_and_update().error.is_some();
        let event = Event::default().event("look").data(if away { "away" } else { "there" });
        Some((Ok(event), (app, looks)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE))
}
