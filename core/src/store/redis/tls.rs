//! Connections that are encrypted.

use std::io;
use std::path::Path;

use redis::{ClientTlsConfig, ConnectionInfo, RedisResult, TlsCertificates};

use crate::base::error::Error;
use crate::store::url::TlsFiles;

/// What makes connections to a server with TLS, or why the address does not work.
pub(crate) fn client(info: ConnectionInfo, files: &TlsFiles) -> Result<RedisResult<redis::Client>, Error> {
    // The application may have chosen a provider already; then that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client_tls = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: pem(cert)?, client_key: pem(key)? }),
        (None, None) => None,
        _ => return Err(Error::invalid("tls_cert and tls_key go together")),
    };
    let root_cert = files.ca.as_deref().map(pem).transpose()?;
    if client_tls.is_none() && root_cert.is_none() {
        return Ok(redis::Client::open(info));
    }
    Ok(redis::Client::build_with_tls(info, TlsCertificates { client_tls, root_cert }))
}

/// What an error of TLS means, if it is one.
pub(crate) fn explain(source: Option<&io::Error>, place: &str) -> Option<String> {
    match source?.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(_) => Some(format!(
            "the certificate of {place} is not trusted; give the file of its CA with tls_ca in the URL, and use the host \
             name that the certificate has"
        )),
        rustls::Error::InvalidMessage(_) => {
            Some(format!("{place} does not speak TLS; write redis:// in the URL, or give the TLS port"))
        }
        rustls::Error::AlertReceived(_) => Some(format!(
            "{place} refused TLS; if it requires a client certificate, give one with tls_cert and tls_key in the URL"
        )),
        _ => None,
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| {
        Error::invalid(format!("cannot read the TLS file {}: {error}", path.display())).with_source(error)
    })
}
