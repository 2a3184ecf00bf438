//! Where connections lead: to a server that stays the same, or to whichever is the master now.

use std::sync::Arc;
use std::time::Instant;

use redis::Connection;

use crate::store::redis::sentinel::Sentinels;
use crate::store::redis::server::Server;
use crate::store::{Failure, FailureKind};

/// Makes connections.
#[derive(Clone, Debug)]
pub(crate) enum Connector {
    /// To this server.
    Fixed(Box<Server>),
    /// To the master that Sentinels name.
    Master(Arc<Sentinels>),
}

/// What belongs to the time of one master. Eras never come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Era(pub(crate) u64);

impl Connector {
    pub(crate) fn fixed(server: Server) -> Self {
        Self::Fixed(Box::new(server))
    }

    /// A connection to the present server.
    pub(crate) fn connect(&self, give_up: Instant) -> Result<(Connection, Era), Failure> {
        match self {
            Self::Fixed(server) => Ok((server.connect(give_up)?, Era::default())),
            Self::Master(sentinels) => {
                let master = sentinels.master(give_up)?;
                Ok((master.connection, master.era))
            }
        }
    }

    /// The present server.
    pub(crate) fn server(&self, give_up: Instant) -> Result<(Server, Era), Failure> {
        match self {
            Self::Fixed(server) => Ok((Server::clone(server), Era::default())),
            Self::Master(sentinels) => {
                let master = sentinels.master(give_up)?;
                Ok((master.server, master.era))
            }
        }
    }

    /// As [`Connector::server`], for a task.
    pub(crate) async fn server_async(&self, give_up: Instant) -> Result<(Server, Era), Failure> {
        match self {
            Self::Fixed(_) => self.server(give_up),
            Self::Master(_) => {
                let connector = self.clone();
                aside(move || connector.server(give_up)).await
            }
        }
    }

    /// The present era: connections of an earlier one lead to a former master.
    pub(crate) fn era(&self) -> Era {
        match self {
            Self::Fixed(_) => Era::default(),
            Self::Master(sentinels) => sentinels.era(),
        }
    }

    /// Which server, for messages.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::Fixed(server) => &server.place,
            Self::Master(sentinels) => sentinels.place(),
        }
    }
}

/// Looks for servers on a thread that may block, so that tasks go on.
pub(crate) async fn aside<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|_| Err(Failure::new(FailureKind::NotSent, "the runtime is ending")))
}
