//! The URL registry: which store an address means. A new store is a folder and a line here.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::Error;
use crate::store::sqlite::SqliteTarget;

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
}

/// Which store, and where.
#[derive(Clone)]
pub enum Address {
    /// One Redis or Valkey server.
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
}

/// How a Redis server is reached.
#[derive(Clone)]
pub enum RedisPlace {
    /// `redis://`, or `rediss://` if `tls`.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
        /// Whether the connection is encrypted.
        tls: bool,
    },
    /// `redis+unix://`
    Unix(PathBuf),
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
            "redis" | "rediss" | "valkey" | "valkeys" => {
                parse_redis(text, matches!(scheme, "rediss" | "valkeys"))
            }
            "redis+unix" | "valkey+unix" | "unix" => parse_unix(text),
            "sqlite" | "memory" => parse_sqlite(scheme, rest),
            "redis-sentinel" | "redis-cluster" => Err(Error::new(
                crate::error::ErrorKind::Unsupported,
                format!("{scheme} is not supported yet; use redis:// with the address of one server"),
            )),
            _ if text.contains('@') => Err(unknown_scheme("")),
            _ => Err(unknown_scheme(scheme)),
        }
    }
}

fn unknown_scheme(scheme: &str) -> Error {
    let shown: String =
        scheme.chars().take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c)).collect();
    Error::invalid(format!(
        "unknown store {shown:?}; use redis://HOST, rediss://HOST, redis+unix:///SOCKET, sqlite:PATH or memory:"
    ))
}

fn parse_redis(text: &str, tls: bool) -> Result<StoreUrl, Error> {
    let url = parsed(text)?;
    let host = match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        Some(host) if !host.to_string().is_empty() => decoded(&host.to_string(), "host")?,
        _ => return Err(Error::invalid("the URL has no host")),
    };
    let db = match url.path().trim_matches('/') {
        "" => 0,
        path => path.parse().map_err(|_| Error::invalid("the URL's path is not a database number"))?,
    };
    let username = (!url.username().is_empty()).then(|| decoded(url.username(), "user name")).transpose()?;
    let password = url.password().map(|password| decoded(password, "password")).transpose()?;
    let place = RedisPlace::Tcp { host, port: url.port().unwrap_or(6379), tls };
    finish_redis(&url, RedisAddress { place, username, password, db, tls: TlsFiles::default() })
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
        RedisAddress { place, username: None, password: None, db: 0, tls: TlsFiles::default() },
    )
}

/// Reads the query parameters of the Redis schemes.
fn finish_redis(url: &Url, mut address: RedisAddress) -> Result<StoreUrl, Error> {
    if url.fragment().is_some() {
        return Err(Error::invalid("the URL has a fragment (#...); no such switch exists"));
    }
    let mut common = Common::of(url.query().unwrap_or_default());
    let unix = matches!(address.place, RedisPlace::Unix(_));
    let tls = matches!(address.place, RedisPlace::Tcp { tls: true, .. });
    for (key, value) in url.query_pairs() {
        match &*key {
            "db" if unix => {
                address.db = value.parse().map_err(|_| Error::invalid("db is not a number"))?;
            }
            "user" if unix => address.username = Some(value.into_owned()),
            "pass" if unix => address.password = Some(value.into_owned()),
            "tls_ca" if tls => address.tls.ca = Some(value.into_owned().into()),
            "tls_cert" if tls => address.tls.cert = Some(value.into_owned().into()),
            "tls_key" if tls => address.tls.key = Some(value.into_owned().into()),
            key => common.take(key, &value)?,
        }
    }
    Ok(common.with(Address::Redis(Box::new(address))))
}

/// `sqlite:PATH[?mode=600]` and `memory:[NAME]`; not real URLs, since a path is written as it is.
fn parse_sqlite(scheme: &str, rest: &str) -> Result<StoreUrl, Error> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = decoded(place, "path")?;
    let mut mode = DEFAULT_FILE_MODE;
    let mut common = Common::of(query);
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "mode" if scheme == "sqlite" => {
                mode = u32::from_str_radix(&value, 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600)
                    .ok_or_else(|| Error::invalid("mode is an octal file mode such as 660"))?;
            }
            key => common.take(key, &value)?,
        }
    }
    let target = match (scheme, place.is_empty()) {
        ("memory", empty) => SqliteTarget::Memory { name: (!empty).then_some(place) },
        (_, true) => {
            return Err(Error::invalid("sqlite: needs a path, such as sqlite:/var/lib/app/locks.db"));
        }
        (_, false) => {
            let path = place.strip_prefix("//").unwrap_or(&place);
            SqliteTarget::File { path: path.into(), mode }
        }
    };
    Ok(common.with(Address::Sqlite(target)))
}

/// The query parameters that every store takes.
#[derive(Default)]
struct Common {
    /// Whether all of the query may be the rest of a password with a question mark in it.
    hides: bool,
    lock_prefix: Option<String>,
    queue_prefix: Option<String>,
    timeout: Option<Duration>,
    foreign_share: Option<bool>,
    label: Option<String>,
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
                let seconds =
                    value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.timeout = Some(seconds.ok_or_else(|| Error::invalid("timeout is a number of seconds"))?);
            }
            "foreign_share" => {
                let share = matches!(value, "true" | "1").then_some(true);
                let share = share.or_else(|| matches!(value, "false" | "0").then_some(false));
                self.foreign_share =
                    Some(share.ok_or_else(|| Error::invalid("foreign_share is true or false"))?);
            }
            _ => {
                // Only what looks like a parameter is repeated.
                let is_word =
                    key.len() < 32 && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                let shown = if is_word && !self.hides { format!(" {key:?}") } else { String::new() };
                return Err(Error::invalid(format!("unknown parameter{shown} in the store's URL")));
            }
        }
        Ok(())
    }

    fn with(self, address: Address) -> StoreUrl {
        let Self { hides: _, lock_prefix, queue_prefix, timeout, foreign_share, label } = self;
        StoreUrl { address, lock_prefix, queue_prefix, timeout, foreign_share, label }
    }
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
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn redis(text: &str) -> RedisAddress {
        match StoreUrl::parse(text).unwrap().address {
            Address::Redis(address) => *address,
            Address::Sqlite(_) => panic!("not redis"),
        }
    }

    #[test]
    fn redis_urls_carry_credentials_and_database() {
        let address = redis("redis://me:s%40crt@example.org:7000/3");
        assert_eq!(address.username.as_deref(), Some("me"));
        assert_eq!(address.password.as_deref(), Some("s@crt"));
        assert_eq!(address.db, 3);
        assert!(matches!(address.place, RedisPlace::Tcp { port: 7000, tls: false, .. }));
        assert!(matches!(redis("rediss://h").place, RedisPlace::Tcp { port: 6379, tls: true, .. }));
        assert!(matches!(redis("redis://[::1]").place, RedisPlace::Tcp { host, .. } if host == "::1"));
    }

    #[test]
    fn unix_sockets_take_credentials_from_the_query() {
        let address = redis("redis+unix:///run/redis.sock?db=2&user=u&pass=p");
        assert!(matches!(address.place, RedisPlace::Unix(path) if path.ends_with("redis.sock")));
        assert_eq!((address.db, address.password.as_deref()), (2, Some("p")));
    }

    #[test]
    fn options_come_from_the_query() {
        let url =
            StoreUrl::parse("redis://h/?lock_prefix=app:&queue_prefix=&timeout=2.5&foreign_share=1").unwrap();
        assert_eq!(url.lock_prefix.as_deref(), Some("app:"));
        assert_eq!(url.queue_prefix.as_deref(), Some(""));
        assert_eq!(url.timeout, Some(Duration::from_millis(2_500)));
        assert_eq!(url.foreign_share, Some(true));
    }

    #[test]
    fn files_and_memory() {
        let target = |text| match StoreUrl::parse(text).unwrap().address {
            Address::Sqlite(target) => target,
            Address::Redis(_) => panic!("not sqlite"),
        };
        assert!(
            matches!(target("sqlite:/a/b.db"), SqliteTarget::File { path, mode: 0o600 } if path.ends_with("b.db"))
        );
        assert!(matches!(target("sqlite:b.db?mode=660"), SqliteTarget::File { mode: 0o660, .. }));
        assert!(matches!(target("memory:"), SqliteTarget::Memory { name: None }));
        assert!(matches!(target("memory:x"), SqliteTarget::Memory { name: Some(name) } if name == "x"));
    }

    #[test]
    fn bad_urls_are_invalid_and_never_repeated() {
        for text in [
            "",
            "x",
            "http://h",
            "redis://",
            "redis://h/x",
            "redis://h?nope=1",
            "rediss://u:c4n4ry-pa55w0rd@h/#insecure",
            "redis://u:c4n4ry-pa55w0rd@h:99999",
            "sqlite:",
            "sqlite:a?mode=9",
            "redis://h?timeout=-1",
            "redis+unix://h/x",
            "redis://h/?tls_ca=x",
            "redis://u:1?c4n4ry-pa55w0rd@h",
            "redis://u:1?canary=c4n4ry-pa55w0rd@h",
            "c4n4ry-pa55w0rd",
            "c4n4ry-pa55w0rd@h",
            "c4n4ry-pa55w0rd:x@h",
        ] {
            let error = StoreUrl::parse(text).err().unwrap_or_else(|| panic!("{text} parsed"));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
            assert!(!error.to_string().contains("c4n4ry-pa55w0rd"), "{error}");
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
}
