//! What a page says when the store does not.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stanchion::{Error, ErrorKind};

use crate::failure::Failure;
use crate::web::html::refused;

/// An error on its way to a page.
pub enum Failing {
    /// The store's.
    Store(Error),
    /// There is nothing of this name.
    Missing(String),
    /// What was sent makes no sense.
    Wrong(String),
}

impl From<Error> for Failing {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Failing {
    fn into_response(self) -> Response {
        match self {
            Self::Missing(what) => refused(
                StatusCode::NOT_FOUND,
                &what,
                "It may have gone in the meantime; search for it, or go back.",
            ),
            Self::Wrong(what) => refused(StatusCode::BAD_REQUEST, &what, "Go back, and try again."),
            Self::Store(error) => {
                let status = match error.kind() {
                    ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
                    ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
                    _ => StatusCode::SERVICE_UNAVAILABLE,
                };
                let failure = Failure::from(error);
                let next = if failure.hint.is_empty() {
                    "This page tries again by itself.".to_owned()
                } else {
                    failure.hint.clone()
                };
                refused(status, &failure.what, &next)
            }
        }
    }
}
