//! In place of `tls.rs` in a build without TLS.

use std::io;

use redis::ConnectionInfo;

use crate::base::error::Error;
use crate::store::features::TLS;
use crate::store::url::TlsFiles;

pub(crate) fn client(
    _info: ConnectionInfo,
    _files: &TlsFiles,
) -> Result<redis::RedisResult<redis::Client>, Error> {
    Err(TLS.missing())
}

pub(crate) fn explain(_source: Option<&io::Error>, _place: &str) -> Option<String> {
    None
}
