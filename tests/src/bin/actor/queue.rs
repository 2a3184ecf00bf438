//! Queues of either face, for orders about tasks.

use std::time::Duration;

use serde_json::{Value, json};
use stanchion::{ClaimOptions, Enqueued, Error, LossReason, QueueStats, Retry, Task, Worker, blocking};

use crate::face::{Client, runtime};

/// A claim of either face.
#[derive(Debug)]
pub(crate) enum Claim {
    /// `stanchion::blocking::Claim`
    Blocking(blocking::Claim),
    /// `stanchion::Claim`
    Async(stanchion::Claim),
}

/// Runs the same call on either face.
macro_rules! either {
    ($self:expr, $claim:ident => $call:expr) => {
        match $self {
            Self::Blocking($claim) => $call,
            Self::Async($claim) => runtime().block_on($call),
        }
    };
}

/// The same, for what does not wait.
macro_rules! plain {
    ($self:expr, $claim:ident => $call:expr) => {
        match $self {
            Self::Blocking($claim) => $call,
            Self::Async($claim) => $call,
        }
    };
}

impl Client {
    pub(crate) fn enqueue(&self, queue: &str, task: Task) -> Result<Enqueued, Error> {
        either!(self, client => client.queue(queue).enqueue(task))
    }

    pub(crate) fn stats(&self, queue: &str) -> Result<QueueStats, Error> {
        either!(self, client => client.queue(queue).stats())
    }

    pub(crate) fn claim(&self, queue: &str, options: ClaimOptions) -> Result<Vec<Claim>, Error> {
        Ok(match self {
            Self::Blocking(client) => {
                client.queue(queue).claim(options)?.into_iter().map(Claim::Blocking).collect()
            }
            Self::Async(client) => {
                let claims = runtime().block_on(client.queue(queue).claim(options))?;
                claims.into_iter().map(Claim::Async).collect()
            }
        })
    }

    /// A worker in the background: `begin` is told each task's id and attempt; whether the task ends then.
    pub(crate) fn work(
        &self,
        queue: &str,
        lease: Duration,
        begin: impl Fn(&str, u32) -> bool + Send + Sync + 'static,
    ) {
        match self {
            Self::Blocking(client) => {
                let queue = client.queue(queue);
                std::thread::spawn(move || {
                    let handle = move |claim: &blocking::Claim| -> Result<(), String> {
                        if !begin(claim.id(), claim.attempt()) {
                            claim.wait_lost(Duration::from_secs(3_600));
                        }
                        Ok(())
                    };
                    blocking::Worker::new(queue, handle).lease(lease).concurrency(4).run().unwrap();
                });
            }
            Self::Async(client) => {
                let handle = move |claim: stanchion::Claim| {
                    let ends = begin(claim.id(), claim.attempt());
                    async move {
                        if !ends {
                            std::future::pending::<()>().await;
                        }
                        Ok::<(), String>(())
                    }
                };
                let worker = Worker::new(client.queue(queue), handle).lease(lease).concurrency(4);
                drop(runtime().spawn(worker.run()));
            }
        }
    }
}

impl Claim {
    pub(crate) fn ack(&self) -> Result<(), Error> {
        either!(self, claim => claim.ack())
    }

    pub(crate) fn nack(&self, delay: Duration) -> Result<(), Error> {
        either!(self, claim => claim.nack(Retry::After(delay), "as ordered"))
    }

    pub(crate) fn extend(&self, lease: Duration) -> Result<(), Error> {
        either!(self, claim => claim.extend(lease))
    }

    /// Waits for the loss; false if it did not come in time.
    pub(crate) fn wait_lost(&self, time: Duration) -> bool {
        match self {
            Self::Blocking(claim) => claim.wait_lost(time),
            Self::Async(claim) => {
                runtime().block_on(async { tokio::time::timeout(time, claim.lost()).await.is_ok() })
            }
        }
    }

    pub(crate) fn status(&self) -> Value {
        let valid = plain!(self, claim => claim.is_valid());
        let loss: Option<LossReason> = plain!(self, claim => claim.loss());
        let remaining = plain!(self, claim => claim.remaining());
        let loss = loss.map(|reason| format!("{reason:?}"));
        json!({ "valid": valid, "loss": loss, "remaining_ms": remaining.as_secs_f64() * 1e3 })
    }

    pub(crate) fn describe(&self) -> Value {
        plain!(self, claim => json!({
            "id": claim.id(),
            "attempt": claim.attempt(),
            "receipt": claim.receipt().get(),
            "payload": String::from_utf8_lossy(claim.payload()),
        }))
    }
}
