//! Clients.

use std::sync::mpsc;

use napi_derive::napi;
use stanchion::{ClientBuilder, ManualClock};

use crate::bridge::Bridge;
use crate::convert::{Flag, Millis, Text, Whole};
use crate::error::{invalid, refused};
use crate::lease::Granted;
use crate::queue::{Queue, Queues};
use crate::runtime::{no_thread, runtime};

/// One number of the metrics.
#[napi(object, object_from_js = false)]
pub struct Sample {
    pub name: String,
    pub value: f64,
}

/// A clock that a test moves.
#[napi]
pub struct Clock(ManualClock);

#[napi]
impl Clock {
    #[allow(clippy::new_without_default, reason = "JavaScript knows constructors only")]
    #[napi(constructor)]
    pub fn new() -> Self {
        Self(ManualClock::new())
    }

    /// After the calls that were started before have begun, so that their waits begin at the old time.
    #[napi]
    pub fn advance(&self, time: Millis) -> napi::Result<()> {
        let (began, wait) = mpsc::channel();
        // The first task comes after the one that starts the calls, the second one after the calls.
        runtime().map_err(no_thread)?.spawn(async move {
            tokio::spawn(async move { began.send(()) });
        });
        let _ = wait.recv();
        self.0.advance(time.0);
        Ok(())
    }
}

/// How to open a store.
#[napi]
pub struct Settings(ClientBuilder);

#[napi]
impl Settings {
    #[napi(constructor)]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub fn new(
        url: Option<Text>,
        lock_prefix: Option<Text>,
        queue_prefix: Option<Text>,
        timeout: Option<Millis>,
        foreign_share: Option<Flag>,
        label: Option<Text>,
        tls_ca: Option<Text>,
        tls_cert: Option<Text>,
        tls_key: Option<Text>,
        clock: Option<&Clock>,
    ) -> napi::Result<Self> {
        let mut builder = match url {
            Some(url) => stanchion::Client::builder(&url.0),
            None => stanchion::Client::from_env(),
        };
        if let Some(prefix) = lock_prefix {
            builder = builder.lock_prefix(prefix.0);
        }
        if let Some(prefix) = queue_prefix {
            builder = builder.queue_prefix(prefix.0);
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout.0);
        }
        if let Some(share) = foreign_share {
            builder = builder.foreign_share(share.0);
        }
        if let Some(label) = label {
            builder = builder.label(label.0);
        }
        if let Some(file) = tls_ca {
            builder = builder.tls_ca(file.0);
        }
        match (tls_cert, tls_key) {
            (Some(cert), Some(key)) => builder = builder.tls_client(cert.0, key.0),
            (None, None) => {}
            _ => return Err(invalid("tlsCert and tlsKey belong together")),
        }
        if let Some(clock) = clock {
            builder = builder.clock(&clock.0);
        }
        Ok(Self(builder))
    }
}

/// Some names, and where the next ones begin.
#[napi(object, object_from_js = false)]
pub struct Names {
    pub names: Vec<String>,
    pub next: Option<u64>,
}

/// Opens a store.
#[napi]
pub fn connect(bridge: Bridge, call: u32, settings: &Settings) -> napi::Result<()> {
    let opening = settings.0.clone().open();
    bridge.start(call, async move { opening.await.map(Client) })
}

/// A client.
#[napi]
pub struct Client(pub(crate) stanchion::Client);

#[napi]
impl Client {
    #[napi]
    pub fn queue(&self, name: Text) -> Queue {
        Queue(self.0.queue(&name.0))
    }

    #[napi]
    pub fn queues(&self, names: Vec<Text>) -> Queues {
        let names: Vec<&str> = names.iter().map(|name| &*name.0).collect();
        Queues(self.0.queues(&names))
    }

    #[napi]
    pub fn resume_lease(&self, bridge: Bridge, call: u32, handle: Text) -> napi::Result<()> {
        let client = self.0.clone();
        let handle = handle.0.parse().map_err(|error| refused(&error))?;
        bridge.start(call, async move { client.resume_lease(&handle).await.map(Granted::of) })
    }

    #[napi]
    pub fn release_all(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let client = self.0.clone();
        bridge.start(call, async move { client.release_all().await.map(|count| count as f64) })
    }

    #[napi]
    pub fn close(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let client = self.0.clone();
        bridge.start(call, async move { client.close().await.map(|count| count as f64) })
    }

    /// Waits for what is done in the background, for the end of the process, when no event loop runs any more.
    #[napi]
    pub fn linger_now(&self, time: Millis) -> napi::Result<()> {
        let (client, (done, wait)) = (self.0.clone(), mpsc::channel());
        let runtime = runtime().map_err(no_thread)?;
        // After what that thread has yet to begin.
        runtime.spawn(async move { done.send(client.linger(time.0).await) });
        let _ = wait.recv_timeout(time.0);
        Ok(())
    }

    #[napi]
    pub fn metrics(&self) -> napi::Result<Vec<Sample>> {
        let metrics = self.0.metrics().map_err(|error| refused(&error))?;
        Ok(metrics.iter().map(|(name, value)| Sample { name: name.to_owned(), value }).collect())
    }

    #[napi]
    pub fn metrics_text(&self) -> napi::Result<String> {
        self.0.metrics_text().map_err(|error| refused(&error))
    }

    #[napi]
    pub fn locks(&self, bridge: Bridge, call: u32, page: Option<Whole>) -> napi::Result<()> {
        let client = self.0.clone();
        bridge.start(call, async move {
            let page = client.locks(page.map(|page| page.0)).await?;
            Ok(Names { names: page.names, next: page.next })
        })
    }

    #[napi]
    pub fn queue_names(&self, bridge: Bridge, call: u32, page: Option<Whole>) -> napi::Result<()> {
        let client = self.0.clone();
        bridge.start(call, async move {
            let page = client.queue_names(page.map(|page| page.0)).await?;
            Ok(Names { names: page.names, next: page.next })
        })
    }
}
