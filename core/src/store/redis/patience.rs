//! How long the server has left to answer.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use crate::base::host_loop::HostLoop;

/// The time that is left; zero if it is over.
pub(crate) fn rest(give_up: Instant) -> Duration {
    give_up.saturating_duration_since(Instant::now())
}

/// What comes until then; `None` if nothing has, also of what is there but not read yet.
pub(crate) async fn by<T>(give_up: Instant, mut coming: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    if let Ok(come) = timeout_at(give_up.into(), &mut coming).await {
        return Some(come);
    }
    HostLoop::catch_up().await;
    match poll_fn(|context| Poll::Ready(coming.as_mut().poll(context))).await {
        Poll::Ready(come) => Some(come),
        Poll::Pending => None,
    }
}
