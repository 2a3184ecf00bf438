//! One connection shared by all tasks, made again when it fails; one more for the tasks of each host's event loop.

use std::collections::HashMap;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, abortable};
use redis::aio::{AsyncStream, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, RedisResult, Value};
use tokio::time::timeout;

use crate::base::host_loop::{HostLoop, HostStream};
use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::codec;
use crate::store::redis::connector::{Connector, aside};
use crate::store::redis::era::Era;
use crate::store::redis::failure::{self, Miss, Next};
use crate::store::redis::look;
use crate::store::redis::patience::{by, rest};
use crate::store::redis::pool;
use crate::store::redis::sending::Sending;
use crate::store::redis::server::Server;

/// A reply missing for so long means a dead connection, not a short deadline.
const DEAD_AFTER: Duration = Duration::from_millis(900);
/// A connection idle for longer is asked whether it still works before it is used.
const CHECK_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Requests queued in the connection before senders wait.
const BUFFER: usize = 1024;

#[derive(Debug)]
pub(crate) struct Multiplexed {
    connector: Connector,
    /// One for each place at most.
    current: Mutex<Vec<Numbered>>,
    /// Held while connecting, so that one task connects and the others of its place wait for it.
    connecting: Mutex<HashMap<Option<u64>, Arc<tokio::sync::Mutex<()>>>>,
    next_number: AtomicU64,
}

#[derive(Clone, Debug)]
struct Numbered {
    number: u64,
    connection: MultiplexedConnection,
    used: Instant,
    era: Era,
    /// The event loop of a host that polls it; `None`: the tokio runtime.
    home: Option<u64>,
    /// Its task, if it is a host's.
    polled: Option<Arc<Polled>>,
}

/// Ends with the last user of the connection, or with the event loop.
#[derive(Debug)]
pub(super) struct Polled {
    task: AbortHandle,
    lives: Weak<()>,
}

impl Polled {
    fn is_over(&self) -> bool {
        self.lives.strong_count() == 0
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Multiplexed {
    pub(crate) fn new(connector: Connector) -> Self {
        Self {
            connector,
            current: Mutex::default(),
            connecting: Mutex::default(),
            next_number: AtomicU64::new(0),
        }
    }

    /// Closes the connection when the calls on it have ended.
    pub(crate) fn close(&self) {
        locked(&self.current).clear();
    }

    /// Performs a request: by its script, unless a look makes that needless.
    pub(crate) async fn run(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let mut current = self.connection(give_up).await.map_err(Miss::unsent)?;
        if let Some(look) = sending.look() {
            let looking = pin!(current.connection.send_packed_commands(&look.commands, 0, look::ANSWERS));
            let answers = self.call(current.number, looking, give_up).await?;
            let answers = answers.map_err(|error| Miss::performing(&error, self.connector.place()))?;
            if let Some(answer) = look.judge(&answers) {
                return Ok(answer);
            }
        }
        let connection = &mut current.connection;
        let mut answer = {
            let asking = pin!(ask(connection, sending.command()));
            self.call(current.number, asking, give_up).await?
        };
        if answer.as_ref().is_err_and(failure::is_no_script) {
            let with_text = sending.with_text();
            // Seldom, so it takes no room of the others.
            let mut asking = Box::pin(ask(connection, &with_text));
            answer = self.call(current.number, asking.as_mut(), give_up).await?;
        }
        let answer = answer.map_err(|error| Miss::performing(&error, self.connector.place()))?;
        if codec::is_torn(sending.request(), &answer) {
            self.discard(current.number);
            return Err(Miss::torn(self.connector.place()));
        }
        Ok(answer)
    }

    /// The server's answer on the connection of this number, or the failure to get one. The question is a kilobyte, which
    /// stays where it is.
    async fn call<T>(
        &self,
        number: u64,
        asking: Pin<&mut impl Future<Output = RedisResult<T>>>,
        give_up: Instant,
    ) -> Result<RedisResult<T>, Miss> {
        let sent = Instant::now();
        let place = self.connector.place();
        if sent >= give_up {
            let message = format!("the timeout was over before {place} could be asked");
            return Err(Miss::unsent(Failure::new(FailureKind::NotSent, message)));
        }
        match by(give_up, asking).await {
            Some(answer) => {
                if answer.as_ref().is_err_and(|error| !pool::is_answer(error)) {
                    self.discard(number);
                }
                Ok(answer)
            }
            None => {
                // A quorum does not wait for it any more: enough others have answered, or too few.
                if self.connector.is_member() || sent.elapsed() >= DEAD_AFTER {
                    self.discard(number);
                }
                let failure = Failure::new(FailureKind::Lost, format!("{place} did not answer in time"));
                Err(Miss { failure, next: Next::LookAgain })
            }
        }
    }

    async fn connection(&self, give_up: Instant) -> Result<Numbered, Failure> {
        let now = Instant::now();
        if let Some(mut current) = self.usable(now) {
            let answers_by = now + give_up.saturating_duration_since(now) / pool::CHECK_SHARE;
            if now.duration_since(current.used) < CHECK_AFTER_IDLE || is_alive(&mut current, answers_by).await
            {
                return Ok(current);
            }
            self.discard(current.number);
        }
        let late =
            || Failure::new(FailureKind::NotSent, format!("{} cannot be reached", self.connector.place()));
        timeout(rest(give_up), self.connect(give_up)).await.map_err(|_| late())?
    }

    async fn connect(&self, give_up: Instant) -> Result<Numbered, Failure> {
        let turn = self.turn_to_connect();
        let _turn = turn.lock().await;
        if let Some(current) = self.usable(Instant::now()) {
            return Ok(current);
        }
        let (server, era) = self.connector.server_async(give_up).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(rest(give_up)))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(BUFFER);
        let home = self.home();
        let (mut connection, polled) = match home {
            Some(_) => hosted(&server, config, give_up).await?,
            None => {
                let connection = server.client.get_multiplexed_async_connection_with_config(&config).await;
                (connection.map_err(|error| server.not_connected(&error))?, None)
            }
        };
        let era = self.connector.vet(&mut connection, era).await?;
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let current = Numbered { number, connection, used: Instant::now(), era, home, polled };
        let mut all = locked(&self.current);
        all.retain(|other| other.home != home);
        all.push(current.clone());
        Ok(current)
    }

    /// One for each place: an event loop that stands still holds up no other.
    fn turn_to_connect(&self) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = locked(&self.connecting);
        all.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(all.entry(self.home()).or_default())
    }

    /// Which event loop of a host is to poll this task's connection, if one can.
    fn home(&self) -> Option<u64> {
        HostLoop::current_id().filter(|_| self.connector.can_be_hosted())
    }

    /// The present connection, with the time of its last use before this one.
    fn usable(&self, now: Instant) -> Option<Numbered> {
        let (home, era) = (self.home(), self.connector.era());
        let mut all = locked(&self.current);
        all.retain(|current| !current.polled.as_ref().is_some_and(|polled| polled.is_over()));
        let current = all.iter_mut().find(|current| current.home == home && current.era == era)?;
        let before = current.clone();
        current.used = now;
        Some(before)
    }

    /// Forgets a connection that failed, unless another has replaced it already.
    fn discard(&self, number: u64) {
        locked(&self.current).retain(|current| current.number != number);
    }
}

/// A connection that the host's event loop polls.
pub(super) async fn hosted(
    server: &Server,
    config: AsyncConnectionConfig,
    give_up: Instant,
) -> Result<(MultiplexedConnection, Option<Arc<Polled>>), Failure> {
    let found = server.clone();
    let (socket, handshake) = aside(move || found.socket(give_up)).await?;
    let making = async {
        let stream = HostStream::new(socket)?;
        let stream: Pin<Box<dyn AsyncStream + Send>> = match handshake {
            Some(handshake) => Box::pin(handshake.over(stream).await?),
            None => Box::pin(stream),
        };
        let settings = server.client.get_connection_info().redis_settings();
        MultiplexedConnection::new_with_config(settings, stream, config).await
    };
    let made = timeout(rest(give_up), making).await;
    let made = made.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
    let (connection, polling) = made.map_err(|error| server.not_connected(&error))?;
    let (polling, task) = abortable(polling);
    let life = Arc::new(());
    let polled = Polled { task, lives: Arc::downgrade(&life) };
    HostLoop::spawn_beside(async move {
        let _ended = polling.await;
        drop(life);
    });
    Ok((connection, Some(Arc::new(polled))))
}

async fn ask(connection: &mut MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
    connection.send_packed_command(command).await?.extract_error()
}

/// That the server has closed a connection meanwhile shows only when it is used.
async fn is_alive(current: &mut Numbered, give_up: Instant) -> bool {
    let ping = redis::cmd("PING");
    matches!(by(give_up, pin!(current.connection.send_packed_command(&ping))).await, Some(Ok(_)))
}
