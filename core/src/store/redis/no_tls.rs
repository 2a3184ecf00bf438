//! In place of `tls.rs` in a build without TLS.

use std::io;

use redis::{Client, ConnectionInfo, RedisResult};

use crate::base::error::Error;
use crate::base::host_loop::HostStream;
use crate::store::features::TLS;
use crate::store::url::TlsFiles;

#[derive(Clone)]
pub(crate) enum Tls {}

pub(crate) enum Handshake {}

impl Tls {
    pub(crate) fn read(_files: &TlsFiles) -> Result<Self, Error> {
        Err(TLS.missing())
    }

    pub(crate) fn client(&self, _info: ConnectionInfo) -> RedisResult<Client> {
        match *self {}
    }

    pub(crate) fn handshake(&self, _host: &str) -> RedisResult<Handshake> {
        match *self {}
    }
}

impl Handshake {
    pub(crate) async fn over(self, _stream: HostStream) -> RedisResult<HostStream> {
        match self {}
    }
}

pub(crate) fn explain(_source: Option<&io::Error>, _place: &str) -> Option<String> {
    None
}
