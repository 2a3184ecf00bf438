//! Connections: so many at most, and none that says nothing for long.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time; others wait until one ends.
const MOST: usize = 512;
/// Whoever is connected says what it wants within this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Without descriptors nobody can come in for a while.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves all who come.
pub async fn serve(listener: TcpListener, routes: Router) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever hangs up, or says what is no HTTP, is told nothing.
            drop(served.await);
            drop(place);
        });
    }
}
