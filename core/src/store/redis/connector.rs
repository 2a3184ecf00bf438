//! Where connections lead: to a server that stays the same, or to whichever is the master now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Connection, Value};

use crate::error::ErrorKind;
use crate::store::redis::confirm::Confirm;
use crate::store::redis::failure;
use crate::store::redis::sentinel::Sentinels;
use crate::store::redis::server::Server;
use crate::store::{Failure, FailureKind};

/// Makes connections.
#[derive(Clone, Debug)]
pub(crate) enum Connector {
    /// To this server.
    Fixed(Box<Server>),
    /// To this server, once it has run for so long: a member of a quorum.
    Member(Box<Server>, Duration),
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
            Self::Member(server, rejoin_after) => {
                let mut connection = server.connect(give_up)?;
                if !rejoin_after.is_zero() {
                    let info = server.ask(&mut connection, &uptime_question(), give_up).map_err(unsent)?;
                    has_run_for(&info, *rejoin_after, &server.place)?;
                }
                Ok((connection, Era::default()))
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
            Self::Fixed(server) | Self::Member(server, _) => Ok((Server::clone(server), Era::default())),
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

    /// What [`Connector::connect`] makes sure of, for a connection that a task has made.
    pub(crate) async fn vet(&self, connection: &mut MultiplexedConnection) -> Result<(), Failure> {
        match self {
            Self::Member(server, rejoin_after) if !rejoin_after.is_zero() => {
                let info = connection.send_packed_command(&uptime_question()).await;
                let info = info.and_then(Value::extract_error);
                let info = info.map_err(|error| unsent(failure::performing(&error, &server.place)))?;
                has_run_for(&info, *rejoin_after, &server.place)
            }
            _ => Ok(()),
        }
    }

    /// The present era: connections of an earlier one lead to a former master.
    pub(crate) fn era(&self) -> Era {
        match self {
            Self::Fixed(_) | Self::Member(..) => Era::default(),
            Self::Master(sentinels) => sentinels.era(),
        }
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

fn uptime_question() -> redis::Cmd {
    let mut info = redis::cmd("INFO");
    info.arg("server");
    info
}

/// Nothing was sent of the request that the connection is for.
fn unsent(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Final(_) => failure,
        _ => Failure { kind: FailureKind::NotSent, ..failure },
    }
}

/// How exact a server's uptime is.
const UPTIME_STEP: Duration = Duration::from_secs(1);

/// A server that restarted may have forgotten leases. When it has run for as long as any lease lasts, they are over.
/// A restart ends all connections, so that it is enough to look at the beginning of each.
fn has_run_for(info: &Value, least: Duration, place: &str) -> Result<(), Failure> {
    let text = match info {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    let uptime = text.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:")?.trim().parse().ok());
    match uptime.map(Duration::from_secs) {
        // Of two times in whole seconds: it may be up to a second more than it has been.
        Some(uptime) if uptime >= least + UPTIME_STEP || least.is_zero() => Ok(()),
        Some(uptime) => {
            let message = format!(
                "{place} started {uptime:?} ago and takes part when it has run for {least:?}: it may have forgotten \
                 leases; rejoin_after in the URL says how long"
            );
            Err(Failure::new(FailureKind::NotSent, message))
        }
        None => {
            let message =
                format!("{place} does not tell how long it has run, which a quorum needs (INFO server)");
            Err(Failure::new(FailureKind::Final(ErrorKind::Unsupported), message))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(uptime: &str, least: u64) -> Result<(), FailureKind> {
        let info = format!("# Server\r\nredis_version:8.0.0\r\n{uptime}\r\nhz:10\r\n");
        let info = Value::BulkString(info.into_bytes());
        has_run_for(&info, Duration::from_secs(least), "here").map_err(|failure| failure.kind)
    }

    /// Seconds are told as whole ones, of two clocks that were cut off: a server that says 60 may have run for 59.
    #[test]
    fn a_server_votes_no_second_too_early() {
        let out = Err(FailureKind::NotSent);
        assert_eq!(judged("uptime_in_seconds:0", 60), out);
        assert_eq!(judged("uptime_in_seconds:59", 60), out);
        assert_eq!(judged("uptime_in_seconds:60", 60), out);
        assert_eq!(judged("uptime_in_seconds:61", 60), Ok(()));
        assert_eq!(judged("uptime_in_seconds:0", 0), Ok(()));
    }

    #[test]
    fn a_server_that_does_not_tell_its_uptime_is_refused_for_good() {
        let refused = Err(FailureKind::Final(ErrorKind::Unsupported));
        assert_eq!(judged("uptime_in_days:9", 60), refused);
        assert_eq!(judged("uptime_in_seconds:soon", 60), refused);
        let told = has_run_for(&Value::Nil, Duration::from_secs(60), "here");
        assert_eq!(told.map_err(|failure| failure.kind), refused);
    }
}
