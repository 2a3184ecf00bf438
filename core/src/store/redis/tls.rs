//! Connections that are encrypted.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use redis::{ClientTlsConfig, ConnectionInfo, RedisResult, TlsCertificates};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::base::error::Error;
use crate::base::host_loop::HostStream;
use crate::store::url::TlsFiles;

/// What is trusted, and what is shown to the server: the same for the connections of the client crate and for those of
/// a host's event loop.
#[derive(Clone)]
pub(crate) struct Tls(Arc<TlsCertificates>);

/// What makes a host's connection an encrypted one.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, Error> {
        let client_tls = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: contents(cert)?, client_key: contents(key)? })
            }
            (None, None) => None,
            _ => return Err(Error::invalid("tls_cert and tls_key go together")),
        };
        let root_cert = files.ca.as_deref().map(contents).transpose()?;
        Ok(Self(Arc::new(TlsCertificates { client_tls, root_cert })))
    }

    /// What makes connections to a server with TLS, or why the address does not work.
    pub(crate) fn client(&self, info: ConnectionInfo) -> RedisResult<redis::Client> {
        // The application may have chosen a provider already; then that one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        redis::Client::build_with_tls(info, TlsCertificates::clone(&self.0))
    }

    /// With the server of this name. It is set up as the client crate sets up its own, which it keeps to itself: each time
    /// the system's authorities are read, unless others are given.
    pub(crate) fn handshake(&self, host: &str) -> RedisResult<Handshake> {
        let TlsCertificates { client_tls, root_cert } = &*self.0;
        let config = ClientConfig::builder().with_root_certificates(roots(root_cert.as_deref())?);
        let config = match client_tls {
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(&own.client_key).map_err(io::Error::other)?;
                config.with_client_auth_cert(certificates(&own.client_cert)?, key)?
            }
            None => config.with_no_client_auth(),
        };
        let name = ServerName::try_from(host)?.to_owned();
        Ok(Handshake { connector: Arc::new(config).into(), name })
    }
}

impl Handshake {
    pub(crate) async fn over(self, stream: HostStream) -> RedisResult<TlsStream<HostStream>> {
        Ok(self.connector.connect(self.name, stream).await?)
    }
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

/// The given authorities, or the system's.
fn roots(given: Option<&[u8]>) -> RedisResult<RootCertStore> {
    let trusted = match given {
        Some(pem) => certificates(pem)?,
        None => {
            let mut found = rustls_native_certs::load_native_certs();
            if let Some(error) = found.errors.pop() {
                return Err(error.into());
            }
            found.certs
        }
    };
    let mut roots = RootCertStore::empty();
    for cert in trusted {
        roots.add(cert)?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(io::Error::other)
}

fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| {
        Error::invalid(format!("cannot read the TLS file {}: {error}", path.display())).with_source(error)
    })
}
