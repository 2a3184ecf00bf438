//! One server, or one of several that share credentials and TLS files.

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use redis::io::tcp::{TcpSettings, socket2::SockRef};
use redis::{Cmd, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike, RedisError, Value};

use crate::base::host_loop::Socket;
use crate::protocol::{Failure, FailureKind};
use crate::store::redis::confirm::Confirm;
use crate::store::redis::failure;
use crate::store::redis::patience::rest;
use crate::store::redis::tls::{Handshake, Tls};
use crate::store::url::Endpoint;

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) client: redis::Client,
    /// The address without credentials, for messages.
    pub(crate) place: String,
    /// What grants need besides.
    pub(crate) confirm: Option<Confirm>,
    /// What its connections are encrypted with, if they are.
    pub(crate) tls: Option<Tls>,
}

impl Server {
    /// Another server with the same credentials and TLS files.
    pub(crate) fn at(&self, endpoint: &Endpoint) -> Result<Self, Failure> {
        let info = self.client.get_connection_info().clone();
        let (host, port) = (endpoint.host.clone(), endpoint.port);
        let (address, place) = match info.addr() {
            ConnectionAddr::TcpTls { tls_params, .. } => {
                let tls_params = tls_params.clone();
                let address = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params };
                (address, format!("{endpoint} (TLS)"))
            }
            _ => (ConnectionAddr::Tcp(host, port), endpoint.to_string()),
        };
        self.like(info.set_addr(address), place)
    }

    /// The same server, spoken to in RESP3.
    pub(crate) fn in_resp3(&self) -> Result<Self, Failure> {
        let info = self.client.get_connection_info().clone();
        let login = info.redis_settings().clone().set_protocol(redis::ProtocolVersion::RESP3);
        self.like(info.set_redis_settings(login), self.place.clone())
    }

    fn like(&self, info: ConnectionInfo, place: String) -> Result<Self, Failure> {
        let db = info.redis_settings().db();
        let client = redis::Client::open(info).map_err(|error| failure::connecting(&error, &place, db))?;
        Ok(Self { client, place, confirm: self.confirm, tls: self.tls.clone() })
    }

    /// A new connection, also if signals cut short the making of it.
    pub(crate) fn connect(&self, give_up: Instant) -> Result<Connection, Failure> {
        loop {
            let left = rest(give_up);
            if left.is_zero() {
                return Err(Failure::new(
                    FailureKind::NotSent,
                    format!("the timeout was over before {} could be asked", self.place),
                ));
            }
            match self.client.get_connection_with_timeout(left) {
                Ok(connection) => return Ok(connection),
                Err(error) if failure::is_interruption(&error) => {}
                Err(error) => return Err(self.not_connected(&error)),
            }
        }
    }

    /// A connected socket, on which nothing was said yet, and what is to be said first.
    pub(crate) fn socket(&self, give_up: Instant) -> Result<(Socket, Option<Handshake>), Failure> {
        let info = self.client.get_connection_info();
        let connected = || match info.addr() {
            ConnectionAddr::Unix(path) => Ok((Socket::Unix(UnixStream::connect(path)?), None)),
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                let handshake = self.tls.as_ref().map(|tls| tls.handshake(host)).transpose()?;
                Ok((Socket::Tcp(tcp(host, *port, info.tcp_settings(), give_up)?), handshake))
            }
            _ => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        connected().map_err(|error| self.not_connected(&error))
    }

    /// An error while connecting.
    pub(crate) fn not_connected(&self, error: &RedisError) -> Failure {
        failure::connecting(error, &self.place, self.client.get_connection_info().redis_settings().db())
    }

    /// What the server answers on this connection.
    pub(crate) fn ask(
        &self,
        connection: &mut Connection,
        command: &Cmd,
        give_up: Instant,
    ) -> Result<Value, Failure> {
        let left = Some(rest(give_up).max(Duration::from_millis(1)));
        connection
            .set_read_timeout(left)
            .and_then(|()| connection.set_write_timeout(left))
            .and_then(|()| connection.req_command(command)?.extract_error())
            .map_err(|error| failure::performing(&error, &self.place))
    }
}

/// To the first of its addresses that accepts; each has its share of the time.
fn tcp(host: &str, port: u16, settings: &TcpSettings, give_up: Instant) -> io::Result<TcpStream> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    for (tried, address) in addresses.iter().enumerate() {
        let share = rest(give_up) / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        result = TcpStream::connect_timeout(address, share.max(Duration::from_millis(1)));
        if let Ok(stream) = &result {
            let socket = SockRef::from(stream);
            socket.set_tcp_nodelay(settings.nodelay())?;
            if let Some(keepalive) = settings.keepalive() {
                socket.set_tcp_keepalive(keepalive)?;
            }
            #[cfg(any(target_os = "linux", target_os = "android"))]
            socket.set_tcp_user_timeout(settings.user_timeout())?;
            break;
        }
    }
    result
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}
