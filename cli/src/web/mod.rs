//! `stanchion web`: the dashboard.

mod actions;
mod auth;
mod bulk;
mod connections;
mod describe;
mod failing;
mod guard;
mod history;
mod html;
mod journal;
mod live;
mod look;
mod looker;
mod notes;
mod pages;
mod problems;
mod routes;

use std::io;
use std::sync::Arc;

use stanchion::Client;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Globals, WebOrder};
use crate::exit;
use crate::failure::Failure;
use crate::report::Report;
use crate::store;
use auth::Auth;
use journal::Journal;
use look::Lookout;
use notes::Notes;

/// Threads that serve it: it mostly waits for the store.
const THREADS: usize = 2;

/// What every page is made from.
pub struct App {
    client: Client,
    lookout: Lookout,
    notes: Notes,
    auth: Auth,
    /// Names under which a browser may ask for it, besides addresses, without ports.
    hosts: Vec<String>,
    read_only: bool,
    show_payloads: bool,
    journal: Journal,
}

/// Serves it until a signal comes.
pub fn web(order: &WebOrder, globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let auth = Auth::of(order)?;
    if !order.listen.ip().is_loopback() && !auth.asks() {
        return Err(Failure::usage(
            format!(
                "{} is not a loopback address: everybody who reaches it could look, and act",
                order.listen
            ),
            "give --auth, --token or --behind-proxy, or listen on 127.0.0.1",
        ));
    }
    let builder = store::builder(globals, report)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::system("starting threads failed", &error))?;
    runtime.block_on(async {
        let client = builder.open().await?;
        serve(order, client, auth, report).await
    })
}

async fn serve(order: &WebOrder, client: Client, auth: Auth, report: &Report) -> Result<u8, Failure> {
    let listener = TcpListener::bind(order.listen).await.map_err(|error| unable(order, &error))?;
    let address = listener.local_addr().map_err(|error| unable(order, &error))?;
    let mut hosts = vec!["localhost".into()];
    hosts.extend(order.host.iter().map(|host| host.to_ascii_lowercase()));
    let app = Arc::new(App {
        lookout: Lookout::start(client.clone(), !order.read_only, !order.no_history && !order.read_only),
        client,
        notes: Notes::default(),
        auth,
        hosts,
        read_only: order.read_only,
        show_payloads: order.show_payloads,
        journal: Journal::start(report.clone()),
    });
    report.note(&format!("the dashboard is at http://{address}/"));
    if !address.ip().is_loopback() && order.host.is_empty() {
        report.note("others reach it by the address of this machine; give its name with --host if they are to use that");
    }
    let routes = routes::routes(Arc::clone(&app));
    // Whoever watches is not waited for: its connection never ends by itself.
    tokio::select! {
        () = connections::serve(listener, routes) => {}
        () = asked_to_end() => {}
    }
    app.client.close().await?;
    app.journal.end();
    Ok(exit::DONE)
}

async fn asked_to_end() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

fn unable(order: &WebOrder, error: &io::Error) -> Failure {
    Failure::new(
        "System",
        exit::SYSTEM,
        format!("listening on {} failed: {error}", order.listen),
        "give another address with --listen; port 0 is one that is free",
    )
}
