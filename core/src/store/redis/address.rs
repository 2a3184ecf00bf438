//! From a parsed URL to what the client crate connects with.

use std::sync::Arc;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError};

use crate::base::error::{Error, ErrorKind};
use crate::store::redis::cluster::Cluster;
use crate::store::redis::connector::Connector;
use crate::store::redis::life::Life;
use crate::store::redis::sentinel::Sentinels;
use crate::store::redis::server::Server;
use crate::store::redis::servers::Kind;
use crate::store::redis::tls::Tls;
use crate::store::url::{Endpoint, RedisAddress, RedisPlace, TlsFiles};

/// An idle connection is probed after this long, so that a dead peer is noticed.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Data unacknowledged for this long closes the connection.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// The servers of an address.
pub(crate) fn servers(address: &RedisAddress) -> Result<Kind, Error> {
    match &address.place {
        RedisPlace::Unix(path) => {
            let target = ConnectionAddr::Unix(path.clone());
            let client = redis::Client::open(info(target, login(address))?);
            Ok(Kind::one(Connector::fixed(Server {
                client: client.map_err(|error| malformed(&error))?,
                place: path.display().to_string(),
                confirm: address.confirm,
                tls: None,
            })))
        }
        RedisPlace::Tcp { server: endpoint, tls } => {
            let server = server(endpoint, *tls, login(address), &address.tls)?;
            Ok(Kind::one(Connector::fixed(Server { confirm: address.confirm, ..server })))
        }
        // Each member is a store of its own.
        RedisPlace::Quorum(_) => Err(Error::new(ErrorKind::Unsupported, "a quorum is not one server")),
        RedisPlace::Sentinel(place) => {
            let template = nowhere();
            let group = server(&template, place.tls, login(address), &address.tls)?;
            let group = Server { confirm: address.confirm, ..group };
            let mut own = unnamed();
            if let Some(username) = &place.username {
                own = own.set_username(username);
            }
            if let Some(password) = &place.password {
                own = own.set_password(password);
            }
            let mut sentinels = Vec::new();
            for sentinel in &place.sentinels {
                sentinels.push(server(sentinel, place.tls, own.clone(), &address.tls)?);
            }
            let sentinels = Sentinels::new(place.master.clone(), group, sentinels)?;
            Ok(Kind::one(Connector::Master(Arc::new(sentinels))))
        }
        RedisPlace::Cluster { seeds, tls } => {
            let template = server(&nowhere(), *tls, login(address), &address.tls)?;
            let template = Server { confirm: address.confirm, ..template };
            Ok(Kind::Cluster(Arc::new(Cluster::new(template, seeds.clone())?)))
        }
    }
}

/// One server of a quorum, whose address has what is common to all of them.
pub(crate) fn member(address: &RedisAddress, endpoint: &Endpoint, life: Life) -> Result<Kind, Error> {
    let server = server(endpoint, address.place.is_encrypted(), login(address), &address.tls)?;
    Ok(Kind::one(Connector::Member(Box::new(server), life)))
}

/// The address of a server that only lends its credentials to others.
fn nowhere() -> Endpoint {
    Endpoint { host: String::new(), port: 0 }
}

/// Naming the library to the server would cost each connection two more commands, each with the whole timeout on a
/// server that does not answer.
fn unnamed() -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_skip_set_lib_name()
}

fn login(address: &RedisAddress) -> RedisConnectionInfo {
    let mut login = unnamed().set_db(address.db);
    if let Some(username) = &address.username {
        login = login.set_username(username);
    }
    if let Some(password) = &address.password {
        login = login.set_password(password);
    }
    login
}

fn server(
    endpoint: &Endpoint,
    tls: bool,
    login: RedisConnectionInfo,
    files: &TlsFiles,
) -> Result<Server, Error> {
    let (host, port) = (endpoint.host.clone(), endpoint.port);
    let (target, place) = if tls {
        let target = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
        (target, format!("{endpoint} (TLS)"))
    } else {
        (ConnectionAddr::Tcp(host, port), endpoint.to_string())
    };
    let info = info(target, login)?;
    let tls = tls.then(|| Tls::read(files)).transpose()?;
    let client = match &tls {
        Some(tls) => tls.client(info),
        None => redis::Client::open(info),
    };
    Ok(Server { client: client.map_err(|error| malformed(&error))?, place, confirm: None, tls })
}

fn info(target: ConnectionAddr, login: RedisConnectionInfo) -> Result<ConnectionInfo, Error> {
    let info = target.into_connection_info().map_err(|error| malformed(&error))?;
    Ok(info.set_redis_settings(login).set_tcp_settings(tcp_settings()))
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

fn malformed(error: &RedisError) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the store's address does not work: {error}"))
}
