//! Who is the master now: Sentinels are asked each time a connection is made.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use redis::{Connection, Value};

use crate::base::error::{Error, ErrorKind};
use crate::base::wake::locked;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::confirm::Confirm;
use crate::store::redis::era::Era;
use crate::store::redis::patience::rest;
use crate::store::redis::server::Server;
use crate::store::url::Endpoint;

/// Sentinels that watch one master.
#[derive(Debug)]
pub(crate) struct Sentinels {
    name: String,
    /// Any server of the master's group: credentials and TLS files are the same for all.
    group: Server,
    sentinels: Vec<Server>,
    /// The one that answered last; it is asked first.
    first: AtomicUsize,
    last: Mutex<Last>,
    place: String,
}

/// The last master that was found.
#[derive(Debug, Default)]
struct Last {
    address: Option<Endpoint>,
    era: Era,
}

/// The master, and a connection to it.
pub(crate) struct Master {
    pub(crate) server: Server,
    pub(crate) connection: Connection,
    pub(crate) era: Era,
}

/// What came of asking all Sentinels.
#[derive(Default)]
struct Search {
    /// Addresses that were tried in vain.
    tried: Vec<Endpoint>,
    /// How many Sentinels know no such master.
    strangers: usize,
    /// What is most worth telling: a problem of the master rather than one of a Sentinel.
    of_master: Option<Failure>,
    of_sentinel: Option<Failure>,
}

impl Sentinels {
    pub(crate) fn new(name: String, group: Server, sentinels: Vec<Server>) -> Result<Self, Error> {
        let places: Vec<_> = sentinels.iter().map(|sentinel| &*sentinel.place).collect();
        let place = format!("the master {name:?} of the Sentinels at {}", places.join(", "));
        Ok(Self { name, group, sentinels, first: AtomicUsize::new(0), last: Mutex::default(), place })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn confirm(&self) -> Option<Confirm> {
        self.group.confirm
    }

    pub(crate) fn era(&self) -> Era {
        locked(&self.last).era
    }

    /// Asks one Sentinel after the other for the master, until one names a server that confirms it. Each gets a
    /// share of the time, so that one that is silent leaves some for the others.
    pub(crate) fn master(&self, give_up: Instant) -> Result<Master, Failure> {
        let count = self.sentinels.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut search = Search::default();
        for position in 0..count {
            let index = (first + position) % count;
            let share = rest(give_up) / u32::try_from(count - position + 1).unwrap_or(u32::MAX);
            match self.address(&self.sentinels[index], Instant::now() + share) {
                Ok(Some(address)) if search.tried.contains(&address) => {}
                Ok(Some(address)) => match self.verified(&address, give_up) {
                    Ok((server, connection)) => {
                        self.first.store(index, Ordering::Relaxed);
                        return Ok(Master { server, connection, era: self.note(address) });
                    }
                    Err(failure) => {
                        search.tried.push(address);
                        search.of_master = Some(failure);
                    }
                },
                Ok(None) => search.strangers += 1,
                Err(failure) => search.of_sentinel = Some(failure),
            }
        }
        Err(self.in_vain(search))
    }

    /// The master's address by one Sentinel; `None` if it knows no such master.
    fn address(&self, sentinel: &Server, give_up: Instant) -> Result<Option<Endpoint>, Failure> {
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&self.name);
        let answer = sentinel
            .connect(give_up)
            .and_then(|mut connection| sentinel.ask(&mut connection, &question, give_up))
            .map_err(|failure| of_a_sentinel(failure, &sentinel.place))?;
        if answer == Value::Nil {
            return Ok(None);
        }
        match redis::from_redis_value::<(String, u16)>(answer) {
            Ok((host, port)) => Ok(Some(Endpoint { host, port })),
            Err(_) => {
                let message = format!("unexpected reply of the Sentinel at {}", sentinel.place);
                Err(Failure::new(FailureKind::NotSent, message))
            }
        }
    }

    /// A connection to this server, if it reports that it is a master. HELLO returns the role too, and unlike ROLE it
    /// needs no right but that to connect.
    fn verified(&self, address: &Endpoint, give_up: Instant) -> Result<(Server, Connection), Failure> {
        let half = Instant::now() + rest(give_up) / 2;
        let server = self.group.at(address)?;
        let mut connection = server.connect(half)?;
        let hello = match server.ask(&mut connection, &redis::cmd("HELLO"), half) {
            Ok(hello) => hello,
            // Who may not ask goes on: a replica refuses to write.
            Err(Failure { kind: FailureKind::Final(_), .. }) => Value::Nil,
            Err(failure) => return Err(Failure { kind: FailureKind::NotSent, ..failure }),
        };
        if is_replica(&hello) {
            let message = format!(
                "the Sentinels name {address} as the master {:?}, but it is a replica now",
                self.name
            );
            return Err(Failure::new(FailureKind::NotSent, message));
        }
        Ok((server, connection))
    }

    /// The era of this master; a new one if it is another than the last.
    fn note(&self, address: Endpoint) -> Era {
        let mut last = locked(&self.last);
        if last.address.as_ref().is_some_and(|known| *known != address) {
            last.era.0 += 1;
        }
        last.address = Some(address);
        last.era
    }

    fn in_vain(&self, search: Search) -> Failure {
        let Search { strangers, of_master, of_sentinel, .. } = search;
        // One that does not know the master may have been reset; if none does, the name is wrong.
        if strangers == self.sentinels.len() {
            let message = format!(
                "the Sentinels know no master {:?}; the URL is redis-sentinel://HOST:PORT/MASTER, and SENTINEL \
                 MASTERS names those that there are",
                self.name
            );
            return Failure::new(FailureKind::Final(ErrorKind::InvalidArgument), message);
        }
        match (of_master, of_sentinel) {
            (Some(failure), _) => failure,
            (None, Some(failure @ Failure { kind: FailureKind::Final(_), .. })) => failure,
            (None, of_sentinel) => {
                let cause = of_sentinel.map_or_else(|| "unknown master".into(), |failure| failure.message);
                let message =
                    format!("no Sentinel returned the address of {}; last error: {cause}", self.place);
                Failure::new(FailureKind::NotSent, message)
            }
        }
    }
}

/// The failure, with a message that names the Sentinel as such.
fn of_a_sentinel(failure: Failure, place: &str) -> Failure {
    let message = match failure.kind {
        FailureKind::Final(ErrorKind::Unsupported) => {
            format!("{place} is no Sentinel; write redis:// instead of redis-sentinel:// in the URL")
        }
        FailureKind::Final(ErrorKind::Denied) => format!(
            "the Sentinel at {place} refused the user name or password; its own are the URL's parameters \
             sentinel_user and sentinel_pass"
        ),
        _ => failure.message,
    };
    Failure { kind: failure.kind, message }
}

/// The role in the answer to HELLO: pairs of names and values.
fn is_replica(hello: &Value) -> bool {
    let is = |value: &Value, word: &str| matches!(value, Value::BulkString(text) if text == word.as_bytes());
    match hello {
        Value::Array(items) => items
            .chunks(2)
            .any(|pair| is(&pair[0], "role") && pair.get(1).is_some_and(|it| is(it, "replica"))),
        Value::Map(pairs) => pairs.iter().any(|(name, value)| is(name, "role") && is(value, "replica")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_tells_the_role() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let hello = |role| Value::Array(vec![text("proto"), Value::Int(2), text("role"), text(role)]);
        assert!(is_replica(&hello("replica")));
        assert!(!is_replica(&hello("master")));
        assert!(is_replica(&Value::Map(vec![(text("role"), text("replica"))])));
        assert!(!is_replica(&Value::Array(vec![text("role")])));
        assert!(!is_replica(&Value::Okay));
    }
}
