//! The URL registry: which store an address means. A new store is a folder, a line here and one in `mod.rs`.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::base::error::Error;
use crate::protocol::{CLOCK_MARGINS, YEAR};

/// Where a Redis server listens unless the URL has another port.
const SERVER_PORT: u16 = 6379;
/// Where a Sentinel listens unless the URL has another port.
const SENTINEL_PORT: u16 = 26379;
/// Servers of a quorum at most: each call asks all of them.
const QUORUM_MOST: usize = 9;
/// How long an answer of one server of a quorum is waited for: a call may need three of them within the second after
/// which it is sent again.
const NODE_TIMEOUT: Duration = Duration::from_millis(250);
/// With more, two rounds with a silent server in each would not be over within that second.
const NODE_TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(500);
/// How long a server that restarted stays out of its quorum: twice the usual ttl.
const REJOIN_AFTER: Duration = Duration::from_secs(60);
/// How long replicas may take to confirm a lease: well within the second after which its request is sent again.
const REPLICA_TIMEOUT: Duration = Duration::from_millis(100);
const REPLICA_TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(500);
/// File mode of a new SQLite store: its owner only.
const DEFAULT_FILE_MODE: u32 = 0o600;

/// A parsed store address with the client options given in its query.
#[derive(Clone)]
pub struct StoreUrl {
    /// Which store.
    pub address: Address,
    /// `lock_prefix=`
    pub lock_prefix: Option<String>,
    /// `queue_prefix=`
    pub queue_prefix: Option<String>,
    /// `timeout=` in seconds.
    pub timeout: Option<Duration>,
    /// `foreign_share=`
    pub foreign_share: Option<bool>,
    /// `label=`
    pub label: Option<String>,
    /// `clock_margin=`: how far the store's clock may go back, and fences still grow.
    pub clock_margin: Option<Duration>,
}

/// Which store, and where.
#[derive(Clone)]
pub enum Address {
    /// One Redis or Valkey server, or several that belong together.
    Redis(Box<RedisAddress>),
    /// A file, or memory.
    Sqlite(SqliteTarget),
}

/// A Redis server's address and credentials. Has no `Debug`: it holds the password.
#[derive(Clone)]
pub struct RedisAddress {
    /// The transport.
    pub place: RedisPlace,
    /// ACL user.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Database number.
    pub db: i64,
    /// PEM files for TLS.
    pub tls: TlsFiles,
    /// `min_replicas=`, `replica_timeout=`: which replicas must have a lease before it counts.
    pub confirm: Option<Confirm>,
}

/// How a Redis server is reached.
#[derive(Clone)]
pub enum RedisPlace {
    /// `redis://`, or `rediss://` if `tls`.
    Tcp {
        /// Where the server listens.
        server: Endpoint,
        /// Whether the connection is encrypted.
        tls: bool,
    },
    /// `redis+unix://`
    Unix(PathBuf),
    /// `redis-sentinel://`, or `rediss-sentinel://` if `tls`.
    Sentinel(SentinelPlace),
    /// `redis-quorum://`, or `rediss-quorum://` if `tls`.
    Quorum(QuorumPlace),
    /// `redis-cluster://`, or `rediss-cluster://` if `tls`.
    Cluster {
        /// Nodes that are asked for the others.
        seeds: Vec<Endpoint>,
        /// Whether connections are encrypted.
        tls: bool,
    },
}

/// Sentinels, and the master that they watch.
#[derive(Clone)]
pub struct SentinelPlace {
    /// Where they listen.
    pub sentinels: Vec<Endpoint>,
    /// The master's name.
    pub master: String,
    /// ACL user at the Sentinels; the address has that of the server.
    pub username: Option<String>,
    /// Password at the Sentinels.
    pub password: Option<String>,
    /// Whether connections are encrypted, to Sentinels and to servers.
    pub tls: bool,
}

/// Independent servers, of which a majority must agree.
#[derive(Clone)]
pub struct QuorumPlace {
    /// Where they listen.
    pub servers: Vec<Endpoint>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// `node_timeout=`: how long an answer of one of them is waited for.
    pub node_timeout: Duration,
    /// `rejoin_after=`: how long one that restarted stays out. A lease lasts no longer. Zero: it takes part at once.
    pub rejoin_after: Duration,
}

/// How many replicas must have a grant, and how long that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// At least so many.
    pub replicas: u32,
    /// No longer than this.
    pub within: Duration,
}

/// Which database a store uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqliteTarget {
    /// A file on a local disk, shared by all processes that may open it. The file is made if need be, its
    /// directory is not.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its mode if it is made; an existing file keeps its own.
        mode: u32,
        /// Whether what goes is overwritten.
        secure_delete: bool,
    },
    /// Memory of this process.
    Memory {
        /// Stores with the same name share their locks; one without a name shares them with nobody.
        name: Option<String>,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl RedisPlace {
    /// Whether connections are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        match self {
            Self::Tcp { tls, .. } | Self::Cluster { tls, .. } => *tls,
            Self::Quorum(place) => place.tls,
            Self::Sentinel(place) => place.tls,
            Self::Unix(_) => false,
        }
    }
}

/// PEM files for TLS; the system's certificate authorities apply where `ca` is not given.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// The client's certificate chain.
    pub cert: Option<PathBuf>,
    /// The client's key.
    pub key: Option<PathBuf>,
}

impl StoreUrl {
    /// Parses an address; everything wrong with it is an `InvalidArgument`. Errors never repeat the
    /// address, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once(':').ok_or_else(|| unknown_scheme(""))?;
        match scheme {
            "redis" | "valkey" => parse_redis(text, false),
            "rediss" | "valkeys" => parse_redis(text, true),
            "redis+unix" | "valkey+unix" | "unix" => parse_unix(text),
            "sqlite" | "memory" => parse_sqlite(scheme, rest),
            "redis-sentinel" | "valkey-sentinel" => parse_sentinel(rest, false),
            "rediss-sentinel" | "valkeys-sentinel" => parse_sentinel(rest, true),
            "redis-cluster" | "valkey-cluster" => parse_cluster(rest, false),
            "rediss-cluster" | "valkeys-cluster" => parse_cluster(rest, true),
            "redis-quorum" | "valkey-quorum" => parse_quorum(rest, false),
            "rediss-quorum" | "valkeys-quorum" => parse_quorum(rest, true),
            _ if text.contains('@') => Err(unknown_scheme("")),
            _ => Err(unknown_scheme(scheme)),
        }
    }
}

fn unknown_scheme(scheme: &str) -> Error {
    let shown: String =
        scheme.chars().take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c)).collect();
    let what = if shown.is_empty() {
        "the URL does not begin with a scheme".into()
    } else {
        format!("unknown store {shown:?}")
    };
    Error::invalid(format!(
        "{what}; use redis://HOST, rediss://HOST, redis+unix:///SOCKET, \
         redis-sentinel://HOST/MASTER, redis-cluster://HOST, redis-quorum://HOST,HOST,HOST, sqlite:PATH or memory:"
    ))
}

fn parse_redis(text: &str, tls: bool) -> Result<StoreUrl, Error> {
    let url = parsed(text)?;
    let place = RedisPlace::Tcp { server: endpoint(&url, SERVER_PORT)?, tls };
    let db = database(url.path().trim_matches('/'))?;
    finish_redis(&url, with_login(&url, place, db)?)
}

/// `HOST:PORT,HOST:PORT/MASTER/DB`. The credentials are for the servers; a Sentinel's own are parameters.
fn parse_sentinel(rest: &str, tls: bool) -> Result<StoreUrl, Error> {
    let (url, sentinels) = listed(rest, SENTINEL_PORT)?;
    let path = url.path().trim_matches('/');
    let (master, db) = path.split_once('/').unwrap_or((path, ""));
    let master = decoded(master, "master name")?;
    if master.is_empty() {
        return Err(Error::invalid(
            "the URL lacks the name of the master that the Sentinels watch: redis-sentinel://HOST:26379/mymaster",
        ));
    }
    let place = SentinelPlace { sentinels, master, username: None, password: None, tls };
    finish_redis(&url, with_login(&url, RedisPlace::Sentinel(place), database(db)?)?)
}

fn parse_cluster(rest: &str, tls: bool) -> Result<StoreUrl, Error> {
    let (url, seeds) = listed(rest, SERVER_PORT)?;
    if database(url.path().trim_matches('/'))? != 0 {
        return Err(Error::invalid("a cluster has no database but 0; separate programs by prefixes instead"));
    }
    finish_redis(&url, with_login(&url, RedisPlace::Cluster { seeds, tls }, 0)?)
}

fn parse_quorum(rest: &str, tls: bool) -> Result<StoreUrl, Error> {
    let (url, servers) = listed(rest, SERVER_PORT)?;
    let mut different = servers.clone();
    different.sort();
    different.dedup();
    if different.len() < servers.len() {
        return Err(Error::invalid("a server is twice in the quorum: it would vote twice"));
    }
    if !(3..=QUORUM_MOST).contains(&servers.len()) {
        return Err(Error::invalid(format!(
            "a quorum has 3 to {QUORUM_MOST} servers: redis-quorum://HOST,HOST,HOST; one server alone is redis://HOST"
        )));
    }
    let db = database(url.path().trim_matches('/'))?;
    let place = QuorumPlace { servers, tls, node_timeout: NODE_TIMEOUT, rejoin_after: REJOIN_AFTER };
    finish_redis(&url, with_login(&url, RedisPlace::Quorum(place), db)?)
}

/// What is common to all of a list of hosts, as the URL of the first one; and where they are.
fn listed(rest: &str, default_port: u16) -> Result<(Url, Vec<Endpoint>), Error> {
    let rest = rest.strip_prefix("//").ok_or_else(|| Error::invalid("the URL has no // after its scheme"))?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut urls = Vec::new();
    for host in hosts.split(',') {
        let at = if login.is_empty() { "" } else { "@" };
        urls.push(parsed(&format!("redis://{login}{at}{host}{tail}"))?);
    }
    let endpoints = urls.iter().map(|url| endpoint(url, default_port)).collect::<Result<_, _>>()?;
    Ok((urls.swap_remove(0), endpoints))
}

fn endpoint(url: &Url, default_port: u16) -> Result<Endpoint, Error> {
    let host = match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        Some(host) if !host.to_string().is_empty() => decoded(&host.to_string(), "host")?,
        _ => return Err(Error::invalid("the URL has no host")),
    };
    Ok(Endpoint { host, port: url.port().unwrap_or(default_port) })
}

fn database(path: &str) -> Result<i64, Error> {
    match path {
        "" => Ok(0),
        path => path.parse().map_err(|_| Error::invalid("the URL's path is not a database number")),
    }
}

fn with_login(url: &Url, place: RedisPlace, db: i64) -> Result<RedisAddress, Error> {
    let username = (!url.username().is_empty()).then(|| decoded(url.username(), "user name")).transpose()?;
    let password = url.password().map(|password| decoded(password, "password")).transpose()?;
    Ok(RedisAddress { place, username, password, db, tls: TlsFiles::default(), confirm: None })
}

fn parse_unix(text: &str) -> Result<StoreUrl, Error> {
    let url = parsed(text)?;
    let path = PathBuf::from(decoded(url.path(), "path")?);
    if path.as_os_str().is_empty() || url.host_str().is_some_and(|host| !host.is_empty()) {
        return Err(Error::invalid("a unix socket's URL has three slashes: redis+unix:///path/to/socket"));
    }
    let place = RedisPlace::Unix(path);
    finish_redis(
        &url,
        RedisAddress {
            place,
            username: None,
            password: None,
            db: 0,
            tls: TlsFiles::default(),
            confirm: None,
        },
    )
}

/// Reads the query parameters of the Redis schemes.
fn finish_redis(url: &Url, mut address: RedisAddress) -> Result<StoreUrl, Error> {
    if url.fragment().is_some() {
        return Err(Error::invalid(
            "the URL has a fragment (#...), which no store has; write # as %23 in a user name or password",
        ));
    }
    let known = known_to_redis(&address.place);
    let mut common = Common::of(url.query().unwrap_or_default());
    let (mut min_replicas, mut replica_timeout) = (0, None);
    for (key, value) in url.query_pairs() {
        common.check(&key, &known)?;
        match &*key {
            "min_replicas" => {
                min_replicas =
                    value.parse().map_err(|_| Error::invalid("min_replicas is a number of replicas"))?;
                continue;
            }
            "replica_timeout" => {
                let within = seconds("replica_timeout", &value)?;
                if !REPLICA_TIMEOUTS.contains(&within) {
                    return Err(Error::invalid("replica_timeout is 0.001 to 0.5 seconds"));
                }
                replica_timeout = Some(within);
                continue;
            }
            _ => {}
        }
        if let RedisPlace::Quorum(place) = &mut address.place {
            match &*key {
                "node_timeout" => {
                    place.node_timeout = seconds("node_timeout", &value)?;
                    if !NODE_TIMEOUTS.contains(&place.node_timeout) {
                        return Err(Error::invalid("node_timeout is 0.001 to 0.5 seconds"));
                    }
                    continue;
                }
                "rejoin_after" => {
                    place.rejoin_after = seconds("rejoin_after", &value)?;
                    if place.rejoin_after > YEAR {
                        return Err(Error::invalid("rejoin_after is a year at most: no lease is longer"));
                    }
                    continue;
                }
                _ => {}
            }
        }
        let sentinel = match &mut address.place {
            RedisPlace::Sentinel(place) => Some(place),
            _ => None,
        };
        match (&*key, sentinel) {
            ("db", _) => {
                address.db = value.parse().map_err(|_| Error::invalid("db is not a number"))?;
            }
            ("user", _) => address.username = Some(value.into_owned()),
            ("pass", _) => address.password = Some(value.into_owned()),
            ("sentinel_user", Some(place)) => place.username = Some(value.into_owned()),
            ("sentinel_pass", Some(place)) => place.password = Some(value.into_owned()),
            ("tls_ca", _) => address.tls.ca = Some(value.into_owned().into()),
            ("tls_cert", _) => address.tls.cert = Some(value.into_owned().into()),
            ("tls_key", _) => address.tls.key = Some(value.into_owned().into()),
            (key, _) => common.take(key, &value)?,
        }
    }
    if min_replicas == 0 && replica_timeout.is_some() {
        return Err(Error::invalid("replica_timeout has no use without min_replicas; add it to the URL"));
    }
    let within = replica_timeout.unwrap_or(REPLICA_TIMEOUT);
    address.confirm = (min_replicas > 0).then_some(Confirm { replicas: min_replicas, within });
    Ok(common.with(Address::Redis(Box::new(address))))
}

/// `sqlite:PATH[?mode=600&secure_delete=true]` and `memory:[NAME]`; not real URLs, since a path is written as it is.
fn parse_sqlite(scheme: &str, rest: &str) -> Result<StoreUrl, Error> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = decoded(place, "path")?;
    let (mut mode, mut secure_delete) = (DEFAULT_FILE_MODE, false);
    let mut common = Common::of(query);
    let known: &[&str] = if scheme == "sqlite" { &["mode", "secure_delete"] } else { &[] };
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        common.check(&key, known)?;
        match &*key {
            "mode" => {
                mode = u32::from_str_radix(&value, 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600)
                    .ok_or_else(|| Error::invalid("mode is an octal file mode such as 660"))?;
            }
            "secure_delete" => {
                secure_delete =
                    value.parse().map_err(|_| Error::invalid("secure_delete is true or false"))?;
            }
            key => common.take(key, &value)?,
        }
    }
    let target = match (scheme, place.is_empty()) {
        ("memory", empty) => SqliteTarget::Memory { name: (!empty).then_some(place) },
        (_, true) => {
            return Err(Error::invalid("sqlite: needs a path, such as sqlite:/var/lib/app/locks.db"));
        }
        (_, false) if place == ":memory:" => {
            return Err(Error::invalid(
                "sqlite::memory: would be a file of that name; say memory: for a store in memory",
            ));
        }
        (_, false) => {
            let path = place.strip_prefix("//").unwrap_or(&place);
            SqliteTarget::File { path: path.into(), mode, secure_delete }
        }
    };
    Ok(common.with(Address::Sqlite(target)))
}

/// The query parameters of a Redis place, besides those that every store takes.
fn known_to_redis(place: &RedisPlace) -> Vec<&'static str> {
    let own: &[_] = match place {
        // Servers of a quorum are each other's replicas.
        RedisPlace::Quorum(_) => &["node_timeout", "rejoin_after"],
        RedisPlace::Sentinel(_) => &["min_replicas", "replica_timeout", "sentinel_user", "sentinel_pass"],
        RedisPlace::Unix(_) => &["min_replicas", "replica_timeout", "db", "user", "pass"],
        RedisPlace::Tcp { .. } | RedisPlace::Cluster { .. } => &["min_replicas", "replica_timeout"],
    };
    let tls: &[_] = if place.is_encrypted() { &["tls_ca", "tls_cert", "tls_key"] } else { &[] };
    [own, tls].concat()
}

/// Those that every store takes.
const COMMON: [&str; 6] =
    ["timeout", "lock_prefix", "queue_prefix", "label", "foreign_share", "clock_margin"];

/// The values of those.
#[derive(Default)]
struct Common {
    /// Whether all of the query may be the rest of a password with a question mark in it.
    hides: bool,
    lock_prefix: Option<String>,
    queue_prefix: Option<String>,
    timeout: Option<Duration>,
    foreign_share: Option<bool>,
    label: Option<String>,
    clock_margin: Option<Duration>,
}

impl Common {
    fn of(query: &str) -> Self {
        Self { hides: query.contains('@'), ..Self::default() }
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "lock_prefix" => self.lock_prefix = Some(value.to_owned()),
            "queue_prefix" => self.queue_prefix = Some(value.to_owned()),
            "label" => self.label = Some(value.to_owned()),
            "timeout" => {
                self.timeout = Some(seconds("timeout", value)?);
            }
            "clock_margin" => {
                let margin = seconds("clock_margin", value)?;
                if !CLOCK_MARGINS.contains(&margin) {
                    return Err(Error::invalid("clock_margin is thirty days at most"));
                }
                self.clock_margin = Some(margin);
            }
            "foreign_share" => {
                let share = matches!(value, "true" | "1").then_some(true);
                let share = share.or_else(|| matches!(value, "false" | "0").then_some(false));
                self.foreign_share =
                    Some(share.ok_or_else(|| Error::invalid("foreign_share is true or false"))?);
            }
            _ => return Err(self.unknown(key, &[])),
        }
        Ok(())
    }

    /// Refuses what is none of the store's parameters, of which `known` are its own.
    fn check(&self, key: &str, known: &[&str]) -> Result<(), Error> {
        if known.contains(&key) || COMMON.contains(&key) { Ok(()) } else { Err(self.unknown(key, known)) }
    }

    fn unknown(&self, key: &str, known: &[&str]) -> Error {
        // Only what looks like a parameter is repeated.
        let is_word = key.len() < 32 && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let shown = if is_word && !self.hides { format!(" {key:?}") } else { String::new() };
        let hint = if self.hides { "; write ? as %3F in a user name or password" } else { "" };
        let known = [known, &COMMON].concat().join(", ");
        Error::invalid(format!("unknown parameter{shown} in the store's URL; it takes {known}{hint}"))
    }

    fn with(self, address: Address) -> StoreUrl {
        let Self { hides: _, lock_prefix, queue_prefix, timeout, foreign_share, label, clock_margin } = self;
        StoreUrl { address, lock_prefix, queue_prefix, timeout, foreign_share, label, clock_margin }
    }
}

fn seconds(what: &str, value: &str) -> Result<Duration, Error> {
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Error::invalid(format!("{what} is a number of seconds")))
}

fn parsed(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|error| Error::invalid(format!("the store's URL is malformed: {error}")))
}

fn decoded(text: &str, what: &str) -> Result<String, Error> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| Error::invalid(format!("the URL's {what} is not UTF-8")))?;
    if text.contains('\0') {
        return Err(Error::invalid(format!("the URL's {what} has a NUL in it")));
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests;
