//! A server with its connections, for threads and for tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use crate::protocol::Failure;
use crate::store::redis::confirm::Confirm;
use crate::store::redis::connector::{Connector, aside};
use crate::store::redis::failure::{Miss, Next};
use crate::store::redis::multiplexed::Multiplexed;
use crate::store::redis::pool::{Pool, Sent};
use crate::store::redis::sending::Sending;
use crate::store::url::Endpoint;

/// Which part of the time one that ails gets, and how seldom it gets all.
const BRIEF: u32 = 4;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) connector: Connector,
    pub(crate) pool: Arc<Pool>,
    multiplexed: Multiplexed,
    /// Where it listens, if it is one of a cluster.
    pub(crate) endpoint: Option<Endpoint>,
    /// How many calls in a row have failed for a reason that lies with the node.
    failures: AtomicU32,
}

/// Calls of one server, one after the other.
pub(crate) type Calls<'a> = &'a dyn Fn(&Cmd) -> Result<Value, Failure>;

/// A request on its way.
pub(crate) struct Exchange<'a> {
    node: &'a Node,
    sending: Sending<'a>,
    sent: Sent,
    give_up: Instant,
}

impl Exchange<'_> {
    /// Waits for the answer.
    pub(crate) fn finish(self) -> Result<Value, Failure> {
        let Self { node, sending, sent, give_up } = self;
        let result = node.pool.finish(sent, &sending, give_up);
        node.note(&result);
        result.map_err(|miss| miss.failure)
    }
}

impl Node {
    pub(crate) fn new(connector: Connector, endpoint: Option<Endpoint>) -> Self {
        Self {
            pool: Arc::new(Pool::new(connector.clone())),
            multiplexed: Multiplexed::new(connector.clone()),
            connector,
            endpoint,
            failures: AtomicU32::new(0),
        }
    }

    pub(crate) fn run(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let result = self.pool.run(sending, give_up);
        self.note(&result);
        result
    }

    /// Sends a request on a connection that is at hand; `None` if there is none.
    pub(crate) fn begin<'a>(&'a self, sending: Sending<'a>, give_up: Instant) -> Option<Exchange<'a>> {
        let sent = self.pool.begin(&sending, give_up)?;
        Some(Exchange { node: self, sending, sent, give_up })
    }

    pub(crate) async fn run_async(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let result = match self.connector.confirm() {
            // WAIT holds up all that comes after it on its connection: so it gets one of its own.
            Some(_) if Confirm::may_concern(sending.request()) => self.run_aside(sending, give_up).await,
            _ => self.multiplexed.run(sending, give_up).await,
        };
        self.note(&result);
        result
    }

    async fn run_aside(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let (pool, own) = (Arc::clone(&self.pool), sending.to_own());
        let run = move || Ok(pool.run(&own.sending(), give_up));
        aside(run).await.map_err(Miss::unsent)?
    }

    pub(crate) fn run_all(&self, sendings: &[&Sending<'_>], give_up: Instant) -> Vec<Result<Value, Miss>> {
        let results = self.pool.run_all(sendings, give_up);
        if let Some(result) = results.first() {
            self.note(result);
        }
        results
    }

    /// Closes all connections.
    pub(crate) fn close(&self) {
        self.pool.close();
        self.multiplexed.close();
    }

    pub(crate) fn is_ailing(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }

    fn note(&self, result: &Result<Value, Miss>) {
        match result {
            Err(Miss { next: Next::LookAgain, .. }) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            _ if self.is_ailing() => self.failures.store(0, Ordering::Relaxed),
            _ => {}
        }
    }

    /// How long it may hold up what concerns others too. One that ails gets little, but now and then all: it may
    /// just be slow.
    pub(crate) fn patience(&self, left: Duration) -> Duration {
        if self.failures.load(Ordering::Relaxed).is_multiple_of(BRIEF) { left } else { left / BRIEF }
    }
}
