//! Which page is where.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::timeout::TimeoutLayer;

use crate::web::html::refused;
use crate::web::pages::{bulk, flows, limiters, locks, overview, queue, schedules, server, tasks};
use crate::web::{App, actions, guard, live};

/// Bytes of a form at most.
const FORM: usize = 16 * 1024;
/// A page that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Assets change with the program only, but nobody wants an old one with a new page.
const ASSETS: &str = "no-cache";

/// All of it.
pub fn routes(app: Arc<App>) -> Router {
    let pages = Router::new()
        .route("/", get(overview::overview))
        .route("/queues", get(overview::all_queues))
        .route("/queues/{queue}", get(queue::queue))
        .route("/queues/{queue}/{verb}", post(actions::queue))
        .route("/queues/{queue}/keys", get(queue::keys))
        .route("/queues/{queue}/tasks", get(tasks::list))
        .route("/queues/{queue}/tasks/{id}", get(tasks::task))
        .route("/queues/{queue}/tasks/{id}/{verb}", post(actions::task))
        .route("/queues/{queue}/dead", get(tasks::dead))
        .route("/queues/{queue}/bulk", get(bulk::ask).post(actions::bulk))
        .route("/queues/{queue}/schedules", get(schedules::list))
        .route("/queues/{queue}/schedules/{id}/{verb}", post(actions::schedule))
        .route("/queues/{queue}/flows", get(flows::list))
        .route("/queues/{queue}/flows/{id}", get(flows::flow))
        .route("/queues/{queue}/flows/{id}/{verb}", post(actions::flow))
        .route("/locks", get(locks::list))
        .route("/locks/{kind}/{name}", get(locks::lock))
        .route("/locks/{kind}/{name}/break", post(actions::break_lock))
        .route("/limiters", get(limiters::list))
        .route("/workers", get(server::workers))
        .route("/server", get(server::server))
        .route("/search", get(server::search))
        .route("/undo/{note}", post(actions::undo))
        .route("/assets/style.css", get(|| async { asset("text/css", include_str!("assets/style.css")) }))
        .route("/assets/page.js", get(|| async { asset("text/javascript", include_str!("assets/page.js")) }))
        .route("/assets/icon.svg", get(|| async { asset("image/svg+xml", include_str!("assets/icon.svg")) }))
        .fallback(|| async {
            refused(StatusCode::NOT_FOUND, "There is no such page.", "Begin at the first one.")
        })
        .layer(from_fn(guard::to_the_end))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, PATIENCE));
    pages
        .route("/live", get(live::live))
        .layer(DefaultBodyLimit::max(FORM))
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CACHE_CONTROL, HeaderValue::from_static(ASSETS))];
    (headers, text).into_response()
}
