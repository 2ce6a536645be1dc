//! [`Endpoint`]: where a member of etcd is, and how a connection to it is made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use h2::client::Connection;
use http::Uri;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::EtcdError;
use crate::grpc::Line;

/// How much a member may send before it is read: one page of a list fits in.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The longest header list and frame are HTTP/2's own defaults; this is for frames of data.
const FRAME: u32 = 1 << 20;

/// What makes the options for etcd unusable.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Not the address of a member.
    #[error("{url:?} is not the URL of an etcd: {problem}")]
    Url {
        /// What was given.
        url: String,
        /// Why it is none.
        problem: &'static str,
    },
    /// A file that cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// Certificate and key do not belong together, or one is missing.
    #[error("the certificate for etcd cannot be used: {0}")]
    Certificate(String),
}

/// The files that a client of etcd shows and trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that may vouch for etcd; those of the machine if there is none.
    pub authorities: Option<PathBuf>,
    /// The certificate to show.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// A member of etcd.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// `http://host:port`
    pub(crate) url: Arc<str>,
    origin: Uri,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Endpoint {
    /// The member at `url`: `http://host:port`, `https://host:port`, or `host:port`.
    pub(crate) fn parse(url: &str, files: &TlsFiles) -> Result<Endpoint, EndpointError> {
        let refuse = |problem| EndpointError::Url { url: url.to_owned(), problem };
        let (is_secure, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(refuse("it must begin with http:// or https://")),
            None => (false, url),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: http::uri::Authority = rest.parse().map_err(|_| refuse("it has no host and port"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(2379);
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(refuse("it must be a host and a port"));
        }
        let tls = if is_secure {
            let name = ServerName::try_from(host.clone()).map_err(|_| refuse("its host is no name"))?;
            Some((TlsConnector::from(Arc::new(client_config(files)?)), name))
        } else {
            None
        };
        let scheme = if is_secure { "https" } else { "http" };
        let url = format!("{scheme}://{authority}");
        let origin = url.parse().map_err(|_| refuse("it is no URL"))?;
        Ok(Endpoint { url: url.into(), origin, host, port, tls })
    }

    /// A new connection. It is driven by a task until it breaks, or nobody uses it any more.
    pub(crate) async fn connect(&self) -> Result<Connected, EtcdError> {
        let unreached = |problem: String| EtcdError::Unreached { endpoint: self.url.clone(), problem };
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await;
        let tcp = tcp.map_err(|error| unreached(error.to_string()))?;
        // Requests are small and waited for.
        let _ = tcp.set_nodelay(true);
        match &self.tls {
            None => self.speak(tcp).await,
            Some((connector, name)) => {
                let tls = connector.connect(name.clone(), tcp).await.map_err(|error| unreached(error.to_string()))?;
                if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(unreached("it does not speak HTTP/2".to_owned()));
                }
                self.speak(tls).await
            }
        }
    }

    async fn speak<T>(&self, io: T) -> Result<Connected, EtcdError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .enable_push(false);
        let unreached =
            |error: h2::Error| EtcdError::Unreached { endpoint: self.url.clone(), problem: error.to_string() };
        let (sender, connection): (_, Connection<T, Bytes>) = builder.handshake(io).await.map_err(unreached)?;
        let is_alive = Arc::new(AtomicBool::new(true));
        let alive = is_alive.clone();
        let url = self.url.clone();
        let driver = tokio::spawn(async move {
            let ended = connection.await;
            alive.store(false, Ordering::Release);
            if let Err(error) = ended {
                tracing::debug!(endpoint = &*url, %error, "a connection to etcd ended");
            }
        });
        Ok(Connected {
            line: Line { sender, endpoint: self.url.clone(), origin: self.origin.clone() },
            is_alive,
            driver,
        })
    }
}

/// A connection, until it breaks.
pub(crate) struct Connected {
    pub(crate) line: Line,
    is_alive: Arc<AtomicBool>,
    driver: tokio::task::JoinHandle<()>,
}

impl Connected {
    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Acquire)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // Whoever still waits on it gets an error, and goes on with another.
        self.driver.abort();
    }
}

fn client_config(files: &TlsFiles) -> Result<ClientConfig, EndpointError> {
    let refuse = |path: &Path, problem: String| EndpointError::File { path: path.to_owned(), problem };
    let read = |path: &Path| {
        let read = CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
        match read {
            Ok(found) if found.is_empty() => Err(refuse(path, "there is no certificate in it".to_owned())),
            Ok(found) => Ok(found),
            Err(error) => Err(refuse(path, error.to_string())),
        }
    };
    let mut roots = RootCertStore::empty();
    match &files.authorities {
        Some(path) => {
            for authority in read(path)? {
                roots.add(authority).map_err(|error| refuse(path, error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| EndpointError::Certificate(error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match (&files.certificate, &files.key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(key, error.to_string()))?;
            let shown = config.with_client_auth_cert(read(certificate)?, secret);
            shown.map_err(|error| EndpointError::Certificate(error.to_string()))?
        }
        _ => return Err(EndpointError::Certificate("certificate and key must be given together".to_owned())),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_members() {
        let plain = TlsFiles::default();
        for (url, want) in [
            ("http://127.0.0.1:2379", Some("http://127.0.0.1:2379")),
            ("127.0.0.1:1", Some("http://127.0.0.1:1")),
            ("http://[::1]:2379/", Some("http://[::1]:2379")),
            ("http://etcd", Some("http://etcd")),
            ("unix:///tmp/x", None),
            ("http://me@etcd:2379", None),
            ("http://", None),
            ("", None),
        ] {
            let parsed = Endpoint::parse(url, &plain).ok();
            assert_eq!(parsed.as_ref().map(|endpoint| &*endpoint.url), want, "{url:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let missing = TlsFiles { authorities: Some("/nowhere/ca.pem".into()), ..TlsFiles::default() };
        let error = Endpoint::parse("https://etcd:2379", &missing).err().expect("is not there");
        assert!(error.to_string().starts_with("/nowhere/ca.pem: "), "{error}");
    }
}
