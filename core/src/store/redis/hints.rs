//! The subscriber connection of a client.
//!
//! It speaks RESP3: there a push is distinct from a reply, so that a read that timed out can be
//! followed by another on the same connection.

use std::time::{Duration, Instant};

use redis::{Cmd, Connection, PushKind, Value};

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::Hints;
use crate::store::redis::connector::Connector;
use crate::store::redis::era::Era;
use crate::store::redis::failure;

/// How often the server is asked whether it is still there; also keeps the connection alive through proxies. It is
/// asked by subscribing once more: the answer to that is a push. One to PING would be a reply, and the client crate drops
/// as many replies as reads have timed out, since they could be late.
const ASK_EVERY: Duration = Duration::from_secs(15);

pub(crate) struct RedisHints {
    connection: Connection,
    connector: Connector,
    era: Era,
    place: String,
    subscribe: Cmd,
    patience: Duration,
    asked: Instant,
    heard: Instant,
}

impl RedisHints {
    /// Subscribes, and returns when the server has confirmed it.
    pub(crate) fn open(connector: &Connector, channel: &str, give_up: Instant) -> Result<Self, Failure> {
        let (server, era) = connector.server(give_up)?;
        let connection = server.in_resp3()?.connect(give_up)?;
        let mut subscribe = redis::cmd("SUBSCRIBE");
        subscribe.arg(channel);
        let now = Instant::now();
        let mut hints = Self {
            connection,
            connector: connector.clone(),
            era,
            place: server.place,
            subscribe,
            patience: Duration::ZERO,
            asked: now,
            heard: now,
        };
        hints.ask()?;
        hints.confirm(give_up)?;
        Ok(hints)
    }

    fn confirm(&mut self, give_up: Instant) -> Result<(), Failure> {
        while let Some(left) = give_up.checked_duration_since(Instant::now()) {
            match self.next(left)? {
                Some(Value::Push { kind: PushKind::Subscribe, .. }) => return Ok(()),
                Some(Value::ServerError(error)) => {
                    return Err(Failure::new(
                        FailureKind::Final(ErrorKind::Denied),
                        format!("{} refused the subscription: {error}", self.place),
                    ));
                }
                _ => {}
            }
        }
        Err(Failure::new(FailureKind::Lost, format!("{} did not confirm the subscription", self.place)))
    }

    fn ask(&mut self) -> Result<(), Failure> {
        self.asked = Instant::now();
        let sent = self.connection.send_packed_command(&self.subscribe.get_packed_command());
        sent.map_err(|error| failure::performing(&error, &self.place))
    }

    /// The next value that the server sends, if one comes within `patience`.
    fn next(&mut self, patience: Duration) -> Result<Option<Value>, Failure> {
        let patience = patience.max(Duration::from_millis(1));
        if self.patience != patience {
            let set = self.connection.set_read_timeout(Some(patience));
            set.map_err(|error| failure::performing(&error, &self.place))?;
            self.patience = patience;
        }
        match self.connection.recv_response() {
            Ok(value) => {
                self.heard = Instant::now();
                Ok(Some(value))
            }
            // A signal, or a stop of the process, cuts a read short: nothing is lost.
            Err(error) if error.is_timeout() || failure::is_interruption(&error) => Ok(None),
            Err(error) => Err(failure::performing(&error, &self.place)),
        }
    }
}

impl Hints for RedisHints {
    fn read(&mut self, patience: Duration, deliver: &mut dyn FnMut(u64)) -> Result<(), Failure> {
        if self.connector.era() != self.era {
            return Err(Failure::new(
                FailureKind::Lost,
                format!("{} is not the master any more", self.place),
            ));
        }
        if let Some(Value::Push { kind: PushKind::Message, data }) = self.next(patience)?
            && let Some(Value::BulkString(seq)) = data.get(1)
            && let Some(seq) = std::str::from_utf8(seq).ok().and_then(|seq| seq.parse().ok())
        {
            deliver(seq);
        }
        // After the read: what came while nobody read is an answer, too.
        if self.asked.elapsed() > ASK_EVERY {
            if self.heard < self.asked {
                return Err(Failure::new(
                    FailureKind::Lost,
                    format!("{} does not answer any more on the channel of hints", self.place),
                ));
            }
            self.ask()?;
        }
        Ok(())
    }
}
