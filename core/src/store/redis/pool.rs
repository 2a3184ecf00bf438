//! Blocking connections: each call runs on the calling thread, on a connection of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, ConnectionLike, RedisError, RedisResult, Value};

use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::confirm::Confirm;
use crate::store::redis::connector::Connector;
use crate::store::redis::era::Era;
use crate::store::redis::failure::{self, Miss, Next};
use crate::store::redis::look;
use crate::store::redis::patience::rest;
use crate::store::redis::sending::Sending;

/// A connection idle for longer is asked whether it still works before it is used.
const CHECK_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Which part of a call's time such a check may take; the rest is for a new connection.
pub(crate) const CHECK_SHARE: u32 = 4;
/// Idle connections kept; more than this many threads at once is rare.
const MAX_IDLE: usize = 64;

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Idle>>,
    closed: AtomicBool,
}

struct Idle {
    connection: Timed,
    since: Instant,
}

/// A connection that knows its timeout: setting the same again would cost two system calls.
struct Timed {
    connection: Connection,
    timeout: Duration,
    era: Era,
}

/// A miss, and the error of the connection if there is one.
type Trouble = (Miss, Option<RedisError>);

/// A request that was sent on this connection, or what became of it at once.
pub(crate) struct Sent {
    connection: Timed,
    result: RedisResult<()>,
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, idle: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Performs a request.
    pub(crate) fn run(&self, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let mut connection = self.take(give_up).map_err(Miss::unsent)?;
        let outcome = match perform(&mut connection, sending, give_up) {
            Ok(value) => self.confirmed(&mut connection, sending, value, give_up),
            Err(error) => Err(self.broken(error)),
        };
        self.put_back(connection, outcome.as_ref().err().and_then(|(_, error)| error.as_ref()));
        outcome.map_err(|(miss, _)| miss)
    }

    /// The answer, if as many replicas have what it grants as must.
    fn confirmed(
        &self,
        connection: &mut Timed,
        sending: &Sending<'_>,
        value: Value,
        give_up: Instant,
    ) -> Result<Value, Trouble> {
        let concerns = || Confirm::concerns(sending.request(), &value);
        let Some(confirm) = self.connector.confirm().filter(|_| concerns()) else { return Ok(value) };
        let left = rest(give_up);
        let answer =
            exchange(connection, &confirm.question(left), left).map_err(|error| self.broken(error))?;
        let Err(failure) = confirm.judge(Some(sending.request()), &answer, self.connector.place()) else {
            return Ok(value);
        };
        if let Some(undo) = Confirm::undo(sending.request()) {
            let undoing = sending.like(&undo);
            // With its text: this is rare.
            exchange(connection, &undoing.with_text(), rest(give_up)).map_err(|error| {
                let (mut miss, error) = self.broken(error);
                if miss.failure.may_be_done() {
                    // It may come late, and would end what a later copy of the acquire is granted: there is none.
                    miss.failure.kind = FailureKind::Spent;
                }
                (miss, error)
            })?;
        }
        Err((Miss { failure, next: Next::Nowhere }, None))
    }

    fn broken(&self, error: RedisError) -> Trouble {
        (Miss::performing(&error, self.connector.place()), Some(error))
    }

    /// Sends a request on an idle connection, if there is one that needs no check.
    pub(crate) fn begin(&self, sending: &Sending<'_>, give_up: Instant) -> Option<Sent> {
        let idle = locked(&self.idle).pop_if(|idle| idle.since.elapsed() < CHECK_AFTER_IDLE)?;
        let mut connection = idle.connection;
        if connection.era != self.connector.era() {
            return None;
        }
        let packed = sending.command().get_packed_command();
        let limited = connection.limit(rest(give_up));
        let result = limited.and_then(|()| connection.connection.send_packed_command(&packed));
        Some(Sent { connection, result })
    }

    /// Waits for the answer to a request that was sent.
    pub(crate) fn finish(&self, sent: Sent, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        let Sent { mut connection, result } = sent;
        let mut result = result
            .and_then(|()| connection.limit(rest(give_up)))
            .and_then(|()| connection.connection.recv_response()?.extract_error());
        if result.as_ref().is_err_and(failure::is_no_script) {
            result = exchange(&mut connection, &sending.with_text(), rest(give_up));
        }
        self.put_back(connection, result.as_ref().err());
        result.map_err(|error| Miss::performing(&error, self.connector.place()))
    }

    /// Performs a plain command that only reads; again, if a signal cut it short.
    pub(crate) fn call(&self, command: &Cmd, give_up: Instant) -> Result<Value, Failure> {
        loop {
            let mut connection = self.take(give_up)?;
            let result = exchange(&mut connection, command, rest(give_up));
            self.put_back(connection, result.as_ref().err());
            if !result.as_ref().is_err_and(failure::is_interruption) {
                return result.map_err(|error| failure::performing(&error, self.connector.place()));
            }
        }
    }

    /// Performs many requests' scripts in one round trip.
    pub(crate) fn run_all(&self, sendings: &[&Sending<'_>], give_up: Instant) -> Vec<Result<Value, Miss>> {
        match self.run_pipeline(sendings, give_up) {
            Ok(values) => values
                .into_iter()
                .zip(sendings)
                .map(|(value, sending)| self.settle(value?, sending, give_up))
                .collect(),
            Err(miss) => sendings.iter().map(|_| Err(miss.clone())).collect(),
        }
    }

    fn run_pipeline(
        &self,
        sendings: &[&Sending<'_>],
        give_up: Instant,
    ) -> Result<Vec<Result<Value, Miss>>, Miss> {
        let mut connection = self.take(give_up).map_err(Miss::unsent)?;
        let mut bytes = Vec::new();
        for sending in sendings {
            bytes.extend_from_slice(&sending.command().get_packed_command());
        }
        let result = exchange_all(&mut connection, &bytes, sendings.len(), give_up);
        let confirm = self.connector.confirm().filter(|_| {
            let concerns = |values: &Vec<Value>| {
                sendings
                    .iter()
                    .zip(values)
                    .any(|(sending, value)| Confirm::concerns(sending.request(), value))
            };
            result.as_ref().is_ok_and(concerns)
        });
        let left = rest(give_up);
        let answer =
            confirm.map(|confirm| (confirm, exchange(&mut connection, &confirm.question(left), left)));
        let error = answer.as_ref().and_then(|(_, answer)| answer.as_ref().err());
        self.put_back(connection, result.as_ref().err().or(error));
        let values = result.map_err(|error| Miss::performing(&error, self.connector.place()))?;
        let verdict = match answer {
            None => Ok(()),
            Some((_, Err(error))) => Err(Miss::performing(&error, self.connector.place()).failure),
            // Renewals are sent so, and no acquires.
            Some((confirm, Ok(answer))) => confirm.judge(None, &answer, self.connector.place()),
        };
        let judged = |(sending, value): (&&Sending<'_>, Value)| match &verdict {
            Err(failure) if Confirm::concerns(sending.request(), &value) => {
                Err(Miss { failure: failure.clone(), next: Next::Nowhere })
            }
            _ => Ok(value),
        };
        Ok(sendings.iter().zip(values).map(judged).collect())
    }

    /// One reply of a pipeline: an error in it concerns only its own request.
    fn settle(&self, value: Value, sending: &Sending<'_>, give_up: Instant) -> Result<Value, Miss> {
        match value.extract_error() {
            Err(error) if failure::is_no_script(&error) => self.run(sending, give_up),
            other => other.map_err(|error| Miss::performing(&error, self.connector.place())),
        }
    }

    /// Closes the idle connections, and each other one when its call has ended.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        locked(&self.idle).clear();
    }

    /// In a forked child: closes the inherited sockets without a word to the server.
    pub(crate) fn close_inherited(&self) {
        if let Ok(mut idle) = self.idle.try_lock() {
            idle.clear();
        }
    }

    /// A connection that works. Checking idle ones and making a new one share the time there is.
    fn take(&self, give_up: Instant) -> Result<Timed, Failure> {
        let era = self.connector.era();
        loop {
            let left = rest(give_up);
            if left.is_zero() {
                return Err(Failure::new(
                    FailureKind::NotSent,
                    "the timeout was over before the store could be asked",
                ));
            }
            let idle = locked(&self.idle).pop();
            let Some(Idle { mut connection, since }) = idle else { break };
            let fresh = since.elapsed() < CHECK_AFTER_IDLE;
            if connection.era == era && (fresh || is_alive(&mut connection, left / CHECK_SHARE)) {
                return Ok(connection);
            }
            // What became of one has most likely become of all.
            locked(&self.idle).clear();
        }
        let (connection, era) = self.connector.connect(give_up)?;
        Ok(Timed { connection, timeout: Duration::MAX, era })
    }

    /// A connection whose call failed is closed: its reply might still come and be taken for another's.
    fn put_back(&self, connection: Timed, error: Option<&RedisError>) {
        if error.is_some_and(|error| !is_answer(error)) || !connection.connection.is_open() {
            return;
        }
        let mut idle = locked(&self.idle);
        if idle.len() < MAX_IDLE && !self.closed.load(Ordering::Acquire) {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }
}

/// Whether a server that still serves answered in full; it refuses a script now and then on a healthy connection.
pub(crate) fn is_answer(error: &RedisError) -> bool {
    error.code().is_some() && !failure::is_of_a_former_master(error)
}

fn is_alive(connection: &mut Timed, left: Duration) -> bool {
    exchange(connection, &redis::cmd("PING"), left).is_ok()
}

/// The answer of a request's script, or of the look that makes it needless.
fn perform(connection: &mut Timed, sending: &Sending<'_>, give_up: Instant) -> RedisResult<Value> {
    if let Some(look) = sending.look() {
        let packed = look.commands.get_packed_pipeline();
        let answers = exchange_all(connection, &packed, look::ANSWERS, give_up)?;
        if let Some(answer) = look.judge(&answers) {
            return Ok(answer);
        }
    }
    let result = exchange(connection, sending.command(), rest(give_up));
    if result.as_ref().is_err_and(failure::is_no_script) {
        return exchange(connection, &sending.with_text(), rest(give_up));
    }
    result
}

/// Sends many commands, and reads as many replies. It ends with the first read that fails: the crate's own pipeline goes
/// on, and a silent server then takes the time of one call for each of them.
fn exchange_all(
    connection: &mut Timed,
    packed: &[u8],
    count: usize,
    give_up: Instant,
) -> RedisResult<Vec<Value>> {
    connection.limit(rest(give_up))?;
    connection.connection.send_packed_command(packed)?;
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        connection.limit(rest(give_up))?;
        match connection.connection.recv_response()? {
            Value::Push { .. } => {}
            value => values.push(value),
        }
    }
    Ok(values)
}

fn exchange(connection: &mut Timed, command: &Cmd, left: Duration) -> RedisResult<Value> {
    connection.limit(left)?;
    connection.connection.req_command(command)?.extract_error()
}

impl Timed {
    /// Whole milliseconds, rounded up: zero would mean "no timeout", and calls mostly have the same limit.
    fn limit(&mut self, left: Duration) -> RedisResult<()> {
        let millis = u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        let timeout = Duration::from_millis(millis.max(1));
        if self.timeout != timeout {
            self.connection.set_read_timeout(Some(timeout))?;
            self.connection.set_write_timeout(Some(timeout))?;
            self.timeout = timeout;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").field("since", &self.since).finish_non_exhaustive()
    }
}
