//! A server with its connections, for threads and for tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redis::Value;

use crate::store::redis::connector::Connector;
use crate::store::redis::failure::{Miss, Next};
use crate::store::redis::multiplexed::Multiplexed;
use crate::store::redis::pool::Pool;
use crate::store::redis::sending::Sending;
use crate::store::url::Endpoint;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) connector: Connector,
    pub(crate) pool: Pool,
    multiplexed: Multiplexed,
    /// Where it listens, if it is one of a cluster.
    pub(crate) endpoint: Option<Endpoint>,
    /// Its last call failed, for a reason that lies with the node.
    is_ailing: AtomicBool,
}

impl Node {
    pub(crate) fn new(connector: Connector, endpoint: Option<Endpoint>) -> Self {
        Self {
            pool: Pool::new(connector.clone()),
            multiplexed: Multiplexed::new(connector.clone()),
            connector,
            endpoint,
            is_ailing: AtomicBool::new(false),
        }
    }

    pub(crate) fn run(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let result = self.pool.run(sending, give_up);
        self.note(&result);
        result
    }

    pub(crate) async fn run_async(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let result = self.multiplexed.run(sending, give_up).await;
        self.note(&result);
        result
    }

    pub(crate) fn run_all(&self, sendings: &[&Sending<'_>], give_up: Instant) -> Vec<Result<Value, Miss>> {
        let results = self.pool.run_all(sendings, give_up);
        if let Some(result) = results.first() {
            self.note(result);
        }
        results
    }

    pub(crate) fn is_ailing(&self) -> bool {
        self.is_ailing.load(Ordering::Relaxed)
    }

    fn note(&self, result: &Result<Value, Miss>) {
        let ails = matches!(result, Err(Miss { next: Next::LookAgain, .. }));
        if self.is_ailing() != ails {
            self.is_ailing.store(ails, Ordering::Relaxed);
        }
    }

    /// How long a node that ails may hold up what concerns others too.
    pub(crate) fn patience(&self, left: Duration) -> Duration {
        if self.is_ailing() { left / 4 } else { left }
    }
}
