//! All servers of a store: one, or those of a cluster.

use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, Value};

use crate::store::redis::cluster::{Cluster, slot};
use crate::store::redis::connector::Connector;
use crate::store::redis::hints::RedisHints;
use crate::store::redis::node::{Exchange, Node};
use crate::store::redis::sending::Sending;
use crate::store::{Failure, FailureKind, Hear};
use crate::verbs::Request;

pub(crate) enum Servers {
    One(Box<Node>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    pub(crate) fn one(connector: Connector) -> Self {
        Self::One(Box::new(Node::new(connector, None)))
    }

    /// Where they are, for messages.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::One(node) => node.connector.place(),
            Self::Cluster(cluster) => cluster.place(),
        }
    }

    /// Whether one script may use all of these keys.
    pub(crate) fn are_together(&self, keys: &[&str]) -> bool {
        match self {
            Self::One(_) => true,
            Self::Cluster(_) => {
                let mut slots = keys.iter().map(|key| slot::of(key.as_bytes()));
                let first = slots.next();
                slots.all(|slot| Some(slot) == first)
            }
        }
    }

    /// Performs a request's script.
    pub(crate) fn run(&self, request: &Request, give_up: Instant) -> Result<Value, Failure> {
        match self {
            Self::One(node) => node.run(&Sending::new(request), give_up).map_err(|miss| miss.failure),
            Self::Cluster(cluster) => cluster.run(&Sending::to_a_cluster(request), give_up),
        }
    }

    /// Sends a request to the one server, if a connection is at hand.
    pub(crate) fn begin<'a>(&'a self, request: &'a Request, give_up: Instant) -> Option<Exchange<'a>> {
        match self {
            Self::One(node) => node.begin(Sending::new(request), give_up),
            Self::Cluster(_) => None,
        }
    }

    /// As [`Servers::run`], for a task.
    pub(crate) async fn run_async(&self, request: &Request, give_up: Instant) -> Result<Value, Failure> {
        match self {
            Self::One(node) => {
                node.run_async(&Sending::new(request), give_up).await.map_err(|miss| miss.failure)
            }
            Self::Cluster(cluster) => cluster.run_async(&Sending::to_a_cluster(request), give_up).await,
        }
    }

    /// Performs many requests' scripts in one round trip to each server.
    pub(crate) fn run_all(&self, requests: &[Request], give_up: Instant, hear: Hear<'_, Value>) {
        match self {
            Self::One(node) => {
                let sendings: Vec<_> = requests.iter().map(Sending::new).collect();
                let results = node.run_all(&sendings.iter().collect::<Vec<_>>(), give_up);
                let told = results.into_iter().map(|result| result.map_err(|miss| miss.failure));
                told.enumerate().for_each(|(number, result)| hear(number, result));
            }
            Self::Cluster(cluster) => {
                let sendings: Vec<_> = requests.iter().map(Sending::to_a_cluster).collect();
                cluster.run_all(&sendings, give_up, hear);
            }
        }
    }

    /// Performs a command that reads and is answered alike by all servers.
    pub(crate) fn call(&self, command: &Cmd, give_up: Instant) -> Result<Value, Failure> {
        match self {
            Self::One(node) => node.pool.call(command, give_up),
            Self::Cluster(cluster) => cluster.call_any(command, give_up),
        }
    }

    /// One step of a listing. `command` makes the command from the cursor.
    pub(crate) fn scan(
        &self,
        page: u64,
        command: impl Fn(u64) -> Cmd,
        give_up: Instant,
    ) -> Result<(u64, Vec<Vec<u8>>), Failure> {
        match self {
            Self::One(node) => {
                let answer = node.pool.call(&command(page), give_up)?;
                redis::from_redis_value(answer).map_err(|_| {
                    Failure::new(FailureKind::Lost, "the server's answer to SCAN makes no sense")
                })
            }
            Self::Cluster(cluster) => cluster.scan(page, command, give_up),
        }
    }

    /// Subscribes to a channel.
    pub(crate) fn hints(&self, channel: &str, give_up: Instant) -> Result<RedisHints, Failure> {
        match self {
            Self::One(node) => RedisHints::open(&node.connector, channel, give_up),
            Self::Cluster(cluster) => cluster.hints(channel, give_up),
        }
    }

    /// In a forked child: closes the inherited sockets without a word to the server.
    pub(crate) fn close_inherited(&self) {
        match self {
            Self::One(node) => node.pool.close_inherited(),
            Self::Cluster(cluster) => cluster.close_inherited(),
        }
    }
}
