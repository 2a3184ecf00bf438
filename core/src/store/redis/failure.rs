//! What an error of the Redis client means for the request.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

use crate::base::error::ErrorKind;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::tls;
use crate::store::url::Endpoint;

/// The rights a user needs, as they are written in an ACL rule. Commands one by one: whole categories have others in
/// them that hold up or end the connections of everybody. AUTH and HELLO need no right.
pub const ACL_RULE: &str = "~Lock:* ~Queue:* ~stanchion:* resetchannels &stanchion:wake:* +ping +select +eval +evalsha \
     +script|load +info +scan +subscribe +publish +get +set +del +unlink +exists +pexpire +persist +pttl +time \
     +hget +hset +hmget +hdel +hlen +hexists +hstrlen +zadd +zrem +zremrangebyscore +zrange +zrevrange +zrank \
     +zscore +zmscore +zcard +zcount +xadd +xlen +xrange";

/// Why a server did not carry out a request, and where to ask next.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) failure: Failure,
    pub(crate) next: Next,
}

/// Where to ask after a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Asking elsewhere would not help.
    Nowhere,
    /// Other servers may have taken over: look again who serves what.
    LookAgain,
    /// The slot is served there. The host may be empty: that of the server that answered.
    Moved(Endpoint),
}

impl Miss {
    /// Nothing was sent.
    pub(crate) fn unsent(failure: Failure) -> Self {
        Self { failure, next: Next::LookAgain }
    }

    /// A request whose answer lost its beginning.
    pub(crate) fn torn(place: &str) -> Self {
        let failure = Failure::new(FailureKind::Lost, not_the_protocol(place));
        Self { failure, next: Next::LookAgain }
    }

    /// A request that was sent.
    pub(crate) fn performing(error: &RedisError, place: &str) -> Self {
        let next = match error.kind() {
            RedisKind::Io | RedisKind::Parse | RedisKind::Server(ServerErrorKind::ClusterDown) => {
                Next::LookAgain
            }
            RedisKind::Server(ServerErrorKind::Moved) => {
                let there = error.redirect_node().and_then(|(address, _)| endpoint(address));
                there.map_or(Next::LookAgain, Next::Moved)
            }
            _ if is_of_a_former_master(error) => Next::LookAgain,
            _ => Next::Nowhere,
        };
        Self { failure: performing(error, place), next }
    }
}

/// Whether the server speaks as one does that is no master any more, or not yet: the connection is closed, so that
/// the next one goes to whoever is master then.
pub(crate) fn is_of_a_former_master(error: &RedisError) -> bool {
    error.code().is_some_and(|code| ["READONLY", "LOADING", "MASTERDOWN"].contains(&code))
}

/// `HOST:PORT`, as nodes of a cluster write it: a host of IPv6 has no brackets.
fn endpoint(text: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    Some(Endpoint { host: host.trim_matches(['[', ']']).to_owned(), port: port.parse().ok()? })
}

/// An error while connecting, to this database: nothing was sent.
pub(crate) fn connecting(error: &RedisError, place: &str, db: i64) -> Failure {
    let (kind, message) = match error.kind() {
        _ if is_of_database(error) => (
            FailureKind::Final(ErrorKind::InvalidArgument),
            format!("{place} has no database {db} ({}); give another number in the URL's path", cause(error)),
        ),

        RedisKind::AuthenticationFailed => (
            FailureKind::Final(ErrorKind::Denied),
            format!("{place} refused the user name or password; check the URL's credentials"),
        ),
        RedisKind::InvalidClientConfig => {
            (FailureKind::Final(ErrorKind::InvalidArgument), format!("cannot connect to {place}: {error}"))
        }
        RedisKind::Io | RedisKind::Server(ServerErrorKind::BusyLoading) => {
            let cause = cause(error);
            let unreached =
                || format!("cannot reach Redis at {place} ({cause}); is it running, and is the URL right?");
            (FailureKind::NotSent, of_tls(error, place).unwrap_or_else(unreached))
        }
        _ if is_auth(error) => (
            FailureKind::Final(ErrorKind::Denied),
            format!(
                "{place} requires other credentials ({}); put user name and password into the URL",
                cause(error)
            ),
        ),
        _ => (FailureKind::NotSent, format!("cannot connect to Redis at {place}: {}", cause(error))),
    };
    Failure::new(kind, message)
}

fn not_the_protocol(place: &str) -> String {
    format!("{place} sent something that is not the Redis protocol")
}

/// An error of a request that was sent.
pub(crate) fn performing(error: &RedisError, place: &str) -> Failure {
    let (kind, advice) = match error.kind() {
        RedisKind::Io => {
            let silent = || format!("{place} did not answer");
            (FailureKind::Lost, of_tls(error, place).unwrap_or_else(silent))
        }
        RedisKind::Parse | RedisKind::UnexpectedReturnType => {
            (FailureKind::Lost, of_tls(error, place).unwrap_or_else(|| not_the_protocol(place)))
        }
        RedisKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly,
        ) => (FailureKind::Refused, format!("{place} does not accept writes now")),
        RedisKind::Server(ServerErrorKind::NoPerm) => (
            FailureKind::Final(ErrorKind::Denied),
            format!("the user lacks a right on {place}; the rule it needs is: {ACL_RULE}"),
        ),
        // The other node would not perform it either: see `Sending::to_a_cluster`.
        RedisKind::Server(ServerErrorKind::Ask) => {
            (FailureKind::Refused, format!("the slot is being moved from {place} to another node"))
        }
        RedisKind::Server(ServerErrorKind::Moved | ServerErrorKind::CrossSlot) => (
            FailureKind::Final(ErrorKind::Unsupported),
            format!("{place} is a node of a cluster; write redis-cluster:// instead of redis:// in the URL"),
        ),
        _ => by_code(error, place),
    };
    let cause = cause(error);
    Failure::new(kind, format!("{advice} ({cause})"))
}

/// Errors that the client crate does not name: recognised by their first word.
fn by_code(error: &RedisError, place: &str) -> (FailureKind, String) {
    let detail = error.detail().unwrap_or_default();
    let has = |word: &str| error.code() == Some(word) || detail.contains(word);
    if has("WRONGTYPE") {
        let message = "the key of the lock or queue, or one of its stanchion: sidecars, holds a value of \
                       another kind; delete it or use another name or prefix";
        (FailureKind::Final(ErrorKind::WrongType), message.into())
    } else if has("OOM") {
        let message = format!("{place} is out of memory; raise maxmemory or free some");
        (FailureKind::Final(ErrorKind::StoreUnavailable), message)
    } else if has("NOPERM") || detail.contains("ACL failure") || detail.contains("can't run this command") {
        let message = format!("the user lacks a right on {place}; the rule it needs is: {ACL_RULE}");
        (FailureKind::Final(ErrorKind::Denied), message)
    } else if is_auth(error) {
        let message = format!("{place} requires other credentials; put user name and password into the URL");
        (FailureKind::Final(ErrorKind::Denied), message)
    } else if ["BUSY", "MISCONF", "NOREPLICAS", "LOADING", "READONLY", "UNKILLABLE"].into_iter().any(has) {
        (FailureKind::Refused, format!("{place} does not accept writes now"))
    } else if detail.contains("cluster support disabled") {
        let message =
            format!("{place} is no node of a cluster; write redis:// instead of redis-cluster:// in the URL");
        (FailureKind::Final(ErrorKind::Unsupported), message)
    } else if detail.contains("unknown command") || detail.contains("Unknown Redis command") {
        (
            FailureKind::Final(ErrorKind::Unsupported),
            format!("{place} is too old; Redis 6.2 or newer is needed"),
        )
    } else if ["attempt to ", "Bad data format", "Missing bytes"]
        .into_iter()
        .any(|text| detail.contains(text))
    {
        // A script met a record of another shape.
        let message = format!("{place} holds a record of the lock or queue that this library did not write");
        (FailureKind::Final(ErrorKind::Corrupt), message)
    } else if detail.contains("max number of clients") {
        (FailureKind::NotSent, format!("{place} has no free connection; raise maxclients"))
    } else {
        (FailureKind::Final(ErrorKind::Internal), format!("{place} answered with an unexpected error"))
    }
}

fn is_of_database(error: &RedisError) -> bool {
    let text = error.to_string();
    // Another one is needed than 0, and a node of a cluster has none.
    ["DB index", "SELECT is not allowed"].into_iter().any(|words| text.contains(words))
}

/// Whether there was a connection, and the server closed it.
fn was_closed(error: &RedisError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = source(error).map(io::Error::kind);
    kind.is_some_and(|kind| [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&kind))
}

/// The probable cause, if only one of the two speaks TLS, or does not trust the other. A server without TLS that gets a
/// TLS handshake waits for more, or closes the connection.
fn of_tls(error: &RedisError, place: &str) -> Option<String> {
    let is_tls = place.ends_with("(TLS)");
    match tls::explain(source(error), place) {
        Some(meaning) => Some(meaning),
        _ if is_tls && error.is_timeout() => Some(format!(
            "{place} did not answer; if it never does, it may not speak TLS: see which port that is"
        )),
        _ if !is_tls && was_closed(error) => Some(format!(
            "{place} closed the connection; it was stopped, or speaks TLS there: then write rediss:// in the URL"
        )),
        _ if !is_tls && error.kind() == RedisKind::Parse => Some(format!(
            "{place} sent something that is not the Redis protocol; if it is TLS, write rediss:// in the URL"
        )),
        _ => None,
    }
}

fn is_auth(error: &RedisError) -> bool {
    ["NOAUTH", "WRONGPASS", "NOPERM"].into_iter().any(|code| error.code() == Some(code))
}

/// Whether the script must be loaded first.
pub(crate) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == RedisKind::Server(ServerErrorKind::NoScript)
}

/// Whether a system call was cut short: by a signal, or because the process was stopped and goes on.
pub(crate) fn is_interruption(error: &RedisError) -> bool {
    source(error).is_some_and(|source| source.kind() == io::ErrorKind::Interrupted)
}

fn source(error: &RedisError) -> Option<&io::Error> {
    type Shared = Arc<dyn Error + Send + Sync>;
    let source = Error::source(error).and_then(|source| source.downcast_ref::<Shared>());
    source.and_then(|source| source.downcast_ref())
}

/// The error's text in one short line.
fn cause(error: &RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let text: String = error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.chars().take(200).collect()
}
