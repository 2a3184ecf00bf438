//! Where connections lead: to a server that stays the same, or to whichever is the master now.

use std::sync::Arc;
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Connection, Value};

use crate::protocol::{Failure, FailureKind};
use crate::store::redis::confirm::Confirm;
use crate::store::redis::era::Era;
use crate::store::redis::failure;
use crate::store::redis::life::Life;
use crate::store::redis::sentinel::Sentinels;
use crate::store::redis::server::Server;

/// Makes connections.
#[derive(Clone, Debug)]
pub(crate) enum Connector {
    /// To this server.
    Fixed(Box<Server>),
    /// To this server of a quorum, if its life lets it vote.
    Member(Box<Server>, Life),
    /// To the master that Sentinels name.
    Master(Arc<Sentinels>),
}

impl Connector {
    pub(crate) fn fixed(server: Server) -> Self {
        Self::Fixed(Box::new(server))
    }

    /// A connection to the present server.
    pub(crate) fn connect(&self, give_up: Instant) -> Result<(Connection, Era), Failure> {
        match self {
            Self::Fixed(server) => Ok((server.connect(give_up)?, Era::default())),
            Self::Member(server, life) => {
                let mut connection = server.connect(give_up)?;
                let mut ask = |command: &Cmd| server.ask(&mut connection, command, give_up).map_err(unsent);
                if let Some(question) = life.meet(&ask(&Life::question())?)? {
                    let (notes, verdict) = life.judge(&or_nothing(ask(&question))?);
                    for note in notes {
                        or_nothing(ask(&note))?;
                    }
                    verdict?;
                }
                Ok((connection, life.era()))
            }
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
            Self::Member(server, life) => Ok((Server::clone(server), life.era())),
            Self::Master(sentinels) => {
                let master = sentinels.master(give_up)?;
                Ok((master.server, master.era))
            }
        }
    }

    /// As [`Connector::server`], for a task.
    pub(crate) async fn server_async(&self, give_up: Instant) -> Result<(Server, Era), Failure> {
        match self {
            Self::Fixed(_) | Self::Member(..) => self.server(give_up),
            Self::Master(_) => {
                let connector = self.clone();
                aside(move || connector.server(give_up)).await
            }
        }
    }

    /// What [`Connector::connect`] makes sure of, for a connection that a task has made in this era. Answers which era
    /// it is of.
    pub(crate) async fn vet(&self, connection: &mut MultiplexedConnection, era: Era) -> Result<Era, Failure> {
        let Self::Member(server, life) = self else { return Ok(era) };
        let mut ask = async |command: &Cmd| {
            let answer = connection.send_packed_command(command).await.and_then(Value::extract_error);
            answer.map_err(|error| unsent(failure::performing(&error, &server.place)))
        };
        if let Some(question) = life.meet(&ask(&Life::question()).await?)? {
            let (notes, verdict) = life.judge(&or_nothing(ask(&question).await)?);
            for note in notes {
                or_nothing(ask(&note).await)?;
            }
            verdict?;
        }
        Ok(life.era())
    }

    /// The present era: connections of an earlier one lead to a former master.
    pub(crate) fn era(&self) -> Era {
        match self {
            Self::Fixed(_) => Era::default(),
            Self::Member(_, life) => life.era(),
            Self::Master(sentinels) => sentinels.era(),
        }
    }

    /// Whether a host's event loop can poll its connections: to a single server.
    pub(crate) fn can_be_hosted(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// Whether it leads to one server of a quorum.
    pub(crate) fn is_member(&self) -> bool {
        matches!(self, Self::Member(..))
    }

    /// What grants need besides.
    pub(crate) fn confirm(&self) -> Option<Confirm> {
        match self {
            Self::Fixed(server) => server.confirm,
            Self::Member(..) => None,
            Self::Master(sentinels) => sentinels.confirm(),
        }
    }

    /// Which server, for messages.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::Fixed(server) | Self::Member(server, _) => &server.place,
            Self::Master(sentinels) => sentinels.place(),
        }
    }
}

/// Nothing was sent of the request that the connection is for.
fn unsent(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Final(_) => failure,
        _ => Failure { kind: FailureKind::NotSent, ..failure },
    }
}

/// Whoever may not read or write notes goes without.
fn or_nothing(answer: Result<Value, Failure>) -> Result<Value, Failure> {
    match answer {
        Err(Failure { kind: FailureKind::Final(_), .. }) => Ok(Value::Nil),
        answer => answer,
    }
}

/// Looks for servers on a thread that may block, so that tasks go on.
pub(crate) async fn aside<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|_| Err(Failure::new(FailureKind::NotSent, "the runtime is ending")))
}
