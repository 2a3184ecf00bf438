//! From a parsed URL to what the client crate connects with.

use std::path::Path;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError,
    TlsCertificates,
};

use crate::error::{Error, ErrorKind};
use crate::store::redis::Connector;
use crate::store::url::{RedisAddress, RedisPlace, TlsFiles};

/// An idle connection is probed after this long, so that a dead peer is noticed.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Data unacknowledged for this long closes the connection.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn connector(address: &RedisAddress) -> Result<Connector, Error> {
    // Naming the library to the server would cost each connection two more commands, each with the whole
    // timeout on a server that does not answer.
    let mut login = RedisConnectionInfo::default().set_db(address.db).set_skip_set_lib_name();
    if let Some(username) = &address.username {
        login = login.set_username(username);
    }
    if let Some(password) = &address.password {
        login = login.set_password(password);
    }
    let (target, place) = match &address.place {
        RedisPlace::Unix(path) => (ConnectionAddr::Unix(path.clone()), path.display().to_string()),
        RedisPlace::Tcp { host, port, tls: false } => {
            (ConnectionAddr::Tcp(host.clone(), *port), format!("{host}:{port}"))
        }
        RedisPlace::Tcp { host, port, tls: true } => {
            let target =
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None };
            (target, format!("{host}:{port} (TLS)"))
        }
    };
    let info = target.into_connection_info().map_err(|error| malformed(&error))?;
    let info = info.set_redis_settings(login).set_tcp_settings(tcp_settings());
    let client = client(info, &address.place, &address.tls)?;
    Ok(Connector { client, place })
}

fn client(info: ConnectionInfo, place: &RedisPlace, tls: &TlsFiles) -> Result<redis::Client, Error> {
    if !matches!(place, RedisPlace::Tcp { tls: true, .. }) {
        return redis::Client::open(info).map_err(|error| malformed(&error));
    }
    // The application may have chosen a provider already; then that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: pem(cert)?, client_key: pem(key)? }),
        (None, None) => None,
        _ => return Err(Error::invalid("tls_cert and tls_key go together")),
    };
    let root_cert = tls.ca.as_deref().map(pem).transpose()?;
    if client_tls.is_none() && root_cert.is_none() {
        return redis::Client::open(info).map_err(|error| malformed(&error));
    }
    redis::Client::build_with_tls(info, TlsCertificates { client_tls, root_cert })
        .map_err(|error| malformed(&error))
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_PROBES);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let settings = settings.set_user_timeout(USER_TIMEOUT);
    settings
}

fn pem(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| {
        Error::invalid(format!("cannot read the TLS file {}: {error}", path.display())).with_source(error)
    })
}

fn malformed(error: &RedisError) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the store's address does not work: {error}"))
}
