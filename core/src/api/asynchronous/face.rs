//! What the nouns are made of, for the async face.

use std::convert::Infallible;
use std::future::Future;

use crate::base::clock::Moment;
use crate::base::error::{Error, ErrorKind};
use crate::base::wake::Place;
use crate::driver;
use crate::engine::Machine;
use crate::session::Live;

pub(crate) use crate::api::worker::Worker;
pub(crate) use crate::driver::drive_all;
/// The code as it stands.
pub(crate) use maybe_async::must_be_async as both;

/// The first of two texts, which is that of the async face.
macro_rules! either {
    ($asynchronous:literal, $blocking:literal) => {
        $asynchronous
    };
}
/// The documentation's example of this name.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../asynchronous/examples/", $name, ".md"))
    };
}
pub(crate) use {either, example};

/// A host's interrupt check is for blocking calls: here it is always `None`, and takes no room in a future.
pub(crate) type Turn<'a> = Option<Infallible>;

pub(crate) fn again(_: &mut Turn<'_>) -> Turn<'static> {
    None
}

/// No `async fn`, so that the future is the driver's own and not one around it.
pub(crate) fn drive<'a, M: Machine>(
    live: &'a Live,
    machine: &'a mut M,
    place: Option<&'a Place>,
    _: Turn<'_>,
) -> impl Future<Output = Result<M::Output, Error>> + use<'a, M> {
    driver::drive(live, machine, place)
}

/// Waits for a hint from within this process.
pub(crate) async fn rest(live: &Live, place: &Place, until: Moment, _: Turn<'_>) -> Result<(), Error> {
    driver::rest_async(live, place, until).await;
    Ok(())
}

/// Runs what is no machine on a thread for such things; `what` is what it is called in an error.
pub(crate) fn aside<T: Send + 'static>(
    what: &'static str,
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> impl Future<Output = Result<T, Error>> {
    // Outside of the future: it would keep room for it.
    let running = tokio::task::spawn_blocking(run);
    async move {
        let interrupted = |_| Error::new(ErrorKind::Internal, format!("{what} was interrupted"));
        running.await.map_err(interrupted)?
    }
}

/// The same for what blocks its thread while it drives machines.
pub(crate) use aside as driving;
