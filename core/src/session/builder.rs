//! Opening a client.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::clock::{Clock, ManualClock};
use crate::base::error::{Error, ErrorKind};
use crate::base::name::Prefixes;
use crate::session::options::{DEFAULT_LOCK_PREFIX, DEFAULT_QUEUE_PREFIX};
use crate::session::{Config, Session};
use crate::store::url::{Address, SqliteTarget, StoreUrl};

/// The environment variable with the store's URL.
pub const URL_VARIABLE: &str = "STANCHION_URL";

/// Collects the options of a client. What is set here wins over the same parameter in the URL.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), stanchion::Error> {
/// use stanchion::Client;
///
/// let client = Client::builder("memory:").lock_prefix("app:").label("importer").open().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it is opened"]
pub struct ClientBuilder {
    url: Option<String>,
    lock_prefix: Option<String>,
    queue_prefix: Option<String>,
    timeout: Option<Duration>,
    foreign_share: Option<bool>,
    label: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_client: Option<(PathBuf, PathBuf)>,
    clock: Clock,
}

impl ClientBuilder {
    pub(crate) fn new(url: Option<String>) -> Self {
        Self {
            url,
            lock_prefix: None,
            queue_prefix: None,
            timeout: None,
            foreign_share: None,
            label: None,
            tls_ca: None,
            tls_client: None,
            clock: Clock::System,
        }
    }

    /// What is put before a lock's name to make its key: at most 128 bytes (default `Lock:`).
    pub fn lock_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.lock_prefix = Some(prefix.into());
        self
    }

    /// What is put before a queue's name to make its key: at most 128 bytes, and not the lock prefix (default `Queue:`).
    pub fn queue_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.queue_prefix = Some(prefix.into());
        self
    }

    /// How long a call may take beyond any wait for a lock or a task: 10 ms to 365 days (default 5 s). After that it
    /// fails with `StoreUnavailable`, or with `Indeterminate` if it may have been carried out.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// After some hand-offs in a row, leave the lock free for a moment, so that other programs that poll for the same
    /// key get a fifth of the grants or more (default off). Redis only.
    pub fn foreign_share(mut self, share: bool) -> Self {
        self.foreign_share = Some(share);
        self
    }

    /// Shown by `holder` for this client's leases: at most 256 bytes without control characters (default: none).
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// PEM file with the certificate authorities to trust instead of the system's. Invalid without TLS.
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls_ca = Some(file.into());
        self
    }

    /// PEM files with the client's certificate chain and key. Invalid without TLS.
    pub fn tls_client(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls_client = Some((cert.into(), key.into()));
        self
    }

    /// A clock that a test moves, instead of the system's. Only for `memory:` stores.
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Clock::Manual(clock.clone());
        self
    }

    /// Checks everything; no I/O on the network.
    pub(crate) fn session(self) -> Result<Session, Error> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty()).ok_or_else(|| {
                Error::invalid(format!(
                    "no store given; pass a URL such as redis://localhost or sqlite:PATH, or set {URL_VARIABLE}"
                ))
            })?,
        };
        let url = StoreUrl::parse(&url).and_then(|url| self.with_tls(url));
        let url = url.map_err(|error| error.during("open", ""))?;
        let config = self.config(url).map_err(|error| error.during("open", ""))?;
        Session::open(config).map_err(|error| error.during("open", ""))
    }

    fn with_tls(&self, mut url: StoreUrl) -> Result<StoreUrl, Error> {
        if self.tls_ca.is_none() && self.tls_client.is_none() {
            return Ok(url);
        }
        let address = match &mut url.address {
            Address::Redis(address) if address.place.is_encrypted() => address,
            // A caller that sets them expects the connection to be encrypted.
            _ => {
                return Err(Error::invalid(
                    "TLS files are for stores with TLS only: rediss://, rediss-sentinel://, rediss-cluster:// or rediss-quorum://",
                ));
            }
        };
        if let Some(ca) = &self.tls_ca {
            address.tls.ca = Some(ca.clone());
        }
        if let Some((cert, key)) = &self.tls_client {
            address.tls.cert = Some(cert.clone());
            address.tls.key = Some(key.clone());
        }
        Ok(url)
    }

    fn config(self, mut url: StoreUrl) -> Result<Config, Error> {
        make_absolute(&mut url)?;
        let in_memory = matches!(url.address, Address::Sqlite(SqliteTarget::Memory { .. }));
        if matches!(self.clock, Clock::Manual(_)) && !in_memory {
            return Err(Error::new(ErrorKind::Unsupported, "a manual clock works only with memory: stores"));
        }
        let lock_prefix = self.lock_prefix.or(url.lock_prefix.clone());
        let queue_prefix = self.queue_prefix.or(url.queue_prefix.clone());
        Ok(Config {
            prefixes: Prefixes::parse(
                lock_prefix.as_deref().unwrap_or(DEFAULT_LOCK_PREFIX),
                queue_prefix.as_deref().unwrap_or(DEFAULT_QUEUE_PREFIX),
            )?,
            clock: self.clock,
            label: self.label.or(url.label.clone()).unwrap_or_default(),
            foreign_share: self.foreign_share.or(url.foreign_share).unwrap_or(false),
            timeout: self.timeout.or(url.timeout),
            url,
        })
    }
}

/// A forked child may change its directory before it opens the store again: it must find the same files.
fn make_absolute(url: &mut StoreUrl) -> Result<(), Error> {
    let files: Vec<&mut PathBuf> = match &mut url.address {
        Address::Sqlite(SqliteTarget::File { path, .. }) => vec![path],
        Address::Sqlite(SqliteTarget::Memory { .. }) => vec![],
        Address::Redis(address) => {
            let tls = &mut address.tls;
            [&mut tls.ca, &mut tls.cert, &mut tls.key].into_iter().flatten().collect()
        }
    };
    for file in files {
        *file = std::path::absolute(&*file)
            .map_err(|error| Error::invalid(format!("{} is not a usable path: {error}", file.display())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_files_are_fixed_when_the_client_is_opened() {
        let url = StoreUrl::parse("sqlite:locks.db").unwrap();
        let config = ClientBuilder::new(None).config(url).unwrap();
        assert!(
            matches!(config.url.address, Address::Sqlite(SqliteTarget::File { path, .. }) if path.is_absolute())
        );
    }
}
