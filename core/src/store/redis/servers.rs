//! All servers of a store: one, or those of a cluster.

use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, Value};

use crate::protocol::{Failure, Request};
use crate::store::Hear;
use crate::store::redis::cluster::Cluster;
use crate::store::redis::connector::Connector;
use crate::store::redis::hints::RedisHints;
use crate::store::redis::node::{Calls, Exchange, Node};
use crate::store::redis::script::Scripts;
use crate::store::redis::sending::Sending;

pub(crate) struct Servers {
    kind: Kind,
    scripts: &'static Scripts,
}

pub(crate) enum Kind {
    One(Box<Node>),
    Cluster(Arc<Cluster>),
}

impl Kind {
    pub(crate) fn one(connector: Connector) -> Self {
        Self::One(Box::new(Node::new(connector, None)))
    }
}

impl Servers {
    pub(crate) fn new(kind: Kind, scripts: &'static Scripts) -> Self {
        Self { kind, scripts }
    }

    /// Where they are, for messages.
    pub(crate) fn place(&self) -> &str {
        match &self.kind {
            Kind::One(node) => node.connector.place(),
            Kind::Cluster(cluster) => cluster.place(),
        }
    }

    /// The way to the server whose connections a host's event loop can poll, if there is such a server.
    pub(crate) fn hosting(&self) -> Option<&Connector> {
        match &self.kind {
            Kind::One(node) => Some(&node.connector).filter(|connector| connector.can_be_hosted()),
            Kind::Cluster(_) => None,
        }
    }

    /// Whether one script may use all of these keys.
    pub(crate) fn are_together(&self, keys: &[&str]) -> bool {
        match &self.kind {
            Kind::One(_) => true,
            Kind::Cluster(cluster) => cluster.are_together(keys),
        }
    }

    /// Performs a request's script.
    pub(crate) fn run(&self, request: &Request, give_up: Instant) -> Result<Value, Failure> {
        match &self.kind {
            Kind::One(node) => {
                node.run(&Sending::new(request, self.scripts), give_up).map_err(|miss| miss.failure)
            }
            Kind::Cluster(cluster) => cluster.run(&Sending::to_a_cluster(request, self.scripts), give_up),
        }
    }

    /// Sends a request to the one server, if a connection is at hand.
    pub(crate) fn begin<'a>(&'a self, request: &'a Request, give_up: Instant) -> Option<Exchange<'a>> {
        match &self.kind {
            Kind::One(node) => node.begin(Sending::new(request, self.scripts), give_up),
            Kind::Cluster(_) => None,
        }
    }

    /// As [`Servers::run`], for a task.
    pub(crate) async fn run_async(&self, request: &Request, give_up: Instant) -> Result<Value, Failure> {
        match &self.kind {
            Kind::One(node) => node
                .run_async(&Sending::new(request, self.scripts), give_up)
                .await
                .map_err(|miss| miss.failure),
            Kind::Cluster(cluster) => {
                cluster.run_async(&Sending::to_a_cluster(request, self.scripts), give_up).await
            }
        }
    }

    /// Performs many requests' scripts in one round trip to each server.
    pub(crate) fn run_all(&self, requests: &[Request], give_up: Instant, hear: Hear<'_, Value>) {
        match &self.kind {
            Kind::One(node) => {
                let sendings: Vec<_> = requests.iter().map(|it| Sending::new(it, self.scripts)).collect();
                let results = node.run_all(&sendings.iter().collect::<Vec<_>>(), give_up);
                let told = results.into_iter().map(|result| result.map_err(|miss| miss.failure));
                told.enumerate().for_each(|(number, result)| hear(number, result));
            }
            Kind::Cluster(cluster) => {
                let sendings: Vec<_> =
                    requests.iter().map(|it| Sending::to_a_cluster(it, self.scripts)).collect();
                cluster.run_all(&sendings, give_up, hear);
            }
        }
    }

    /// Performs a command that reads and is answered alike by all servers.
    pub(crate) fn call(&self, command: &Cmd, give_up: Instant) -> Result<Value, Failure> {
        match &self.kind {
            Kind::One(node) => node.pool.call(command, give_up),
            Kind::Cluster(cluster) => cluster.call_any(command, give_up),
        }
    }

    /// One step of a listing: from a server's cursor the next one and what was found, all with calls to that server.
    pub(crate) fn scan<T>(
        &self,
        page: u64,
        step: impl Fn(u64, Calls<'_>) -> Result<(u64, T), Failure>,
        give_up: Instant,
    ) -> Result<(u64, Option<T>), Failure> {
        match &self.kind {
            Kind::One(node) => {
                let (next, found) = step(page, &|command| node.pool.call(command, give_up))?;
                Ok((next, Some(found)))
            }
            Kind::Cluster(cluster) => cluster.scan(page, step, give_up),
        }
    }

    /// Subscribes to a channel.
    pub(crate) fn hints(&self, channel: &str, give_up: Instant) -> Result<RedisHints, Failure> {
        match &self.kind {
            Kind::One(node) => RedisHints::open(&node.connector, channel, give_up),
            Kind::Cluster(cluster) => cluster.hints(channel, give_up),
        }
    }

    /// Closes all connections.
    pub(crate) fn close(&self) {
        match &self.kind {
            Kind::One(node) => node.close(),
            Kind::Cluster(cluster) => cluster.close(),
        }
    }

    /// In a forked child: closes the inherited sockets without a word to the server.
    pub(crate) fn close_inherited(&self) {
        match &self.kind {
            Kind::One(node) => node.pool.close_inherited(),
            Kind::Cluster(cluster) => cluster.close_inherited(),
        }
    }
}
