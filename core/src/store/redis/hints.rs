//! The subscriber connection of a client.
//!
//! It speaks RESP3: there a push is distinct from a reply, so that a read that timed out can be
//! followed by another on the same connection.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Connection, PushInfo, PushKind, Value};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::connector::Connector;
use crate::store::redis::era::Era;
use crate::store::redis::failure;
use crate::store::redis::multiplexed;
use crate::store::redis::patience::{by, rest};
use crate::store::{Deliver, Hints, Listening};

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
        if let Some(Value::Push { kind, data }) = self.next(patience)?
            && let Some(seq) = hinted(&kind, &data)
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

/// The waiter that a push is for.
fn hinted(kind: &PushKind, data: &[Value]) -> Option<u64> {
    match (kind, data.get(1)?) {
        (PushKind::Message, Value::BulkString(seq)) => std::str::from_utf8(seq).ok()?.parse().ok(),
        _ => None,
    }
}

/// Subscribes on a connection that the host's event loop polls.
pub(crate) async fn hosted(
    connector: &Connector,
    channel: String,
    give_up: Instant,
    deliver: Deliver,
) -> Result<Listening, Failure> {
    let server = connector.server(give_up)?.0.in_resp3()?;
    let broken = Arc::new(Notify::new());
    let breaks = Arc::clone(&broken);
    let push = move |push: PushInfo| {
        match hinted(&push.kind, &push.data) {
            Some(seq) => deliver(seq),
            None if push.kind == PushKind::Disconnection => breaks.notify_one(),
            None => {}
        }
        Ok::<(), ()>(())
    };
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(push);
    let (mut connection, polled) = multiplexed::hosted(&server, config, give_up).await?;
    let mut subscribe = redis::cmd("SUBSCRIBE");
    subscribe.arg(channel);
    if !is_confirmed(&mut connection, &subscribe, rest(give_up)).await {
        let message = format!("{} did not confirm the subscription", server.place);
        return Err(Failure::new(FailureKind::Lost, message));
    }
    Ok(Box::pin(async move {
        let _polled = polled;
        let asks = async {
            sleep(ASK_EVERY).await;
            while is_confirmed(&mut connection, &subscribe, ASK_EVERY).await {
                sleep(ASK_EVERY).await;
            }
        };
        tokio::select! { () = asks => {}, () = broken.notified() => {} }
    }))
}

async fn is_confirmed(connection: &mut MultiplexedConnection, subscribe: &Cmd, left: Duration) -> bool {
    let answer = by(Instant::now() + left, pin!(connection.send_packed_command(subscribe))).await;
    matches!(answer, Some(Ok(Value::Push { kind: PushKind::Subscribe, .. })))
}
