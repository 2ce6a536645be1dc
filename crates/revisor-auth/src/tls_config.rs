//! [`ServerTls`]: how the server speaks TLS at the moment, and that it asks for client certificates.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use crate::certificates::{CertificateError, ServingFiles, read_required};
use crate::client_trust::ClientTrust;
use crate::peer::PeerVerifier;
use crate::shown_certificates::ShownCertificates;
use crate::tls_options::TlsOptions;

/// The cryptography of everything in this crate. Handed to rustls wherever it is used, instead of being installed as
/// the default of the process: upholds G1.
///
/// AES with 128 bits comes first: it is as safe as the certificates' keys, a third cheaper than with 256 bits, and most
/// of what a read costs is encryption.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| !format!("{:?}", suite.suite()).contains("AES_128"));
    Arc::new(provider)
}

/// How a server speaks TLS at the moment. Whoever accepts a connection asks anew.
#[derive(Debug, Clone)]
pub struct ServerTls(watch::Receiver<TlsConfigs>);

/// The server's side of TLS: one for all, and those for addresses that a certificate was given for.
#[derive(Debug)]
pub(crate) struct TlsConfigs {
    general: Arc<ServerConfig>,
    by_address: HashMap<IpAddr, Arc<ServerConfig>>,
}

impl ServerTls {
    pub(crate) fn following(configs: watch::Receiver<TlsConfigs>) -> ServerTls {
        ServerTls(configs)
    }

    /// The configuration for a connection that was made to `address`.
    pub fn config(&self, address: IpAddr) -> Arc<ServerConfig> {
        let configs = self.0.borrow();
        configs.by_address.get(&address.to_canonical()).unwrap_or(&configs.general).clone()
    }
}

/// One that never changes.
impl From<Arc<ServerConfig>> for ServerTls {
    fn from(general: Arc<ServerConfig>) -> ServerTls {
        ServerTls(watch::channel(TlsConfigs { general, by_address: HashMap::new() }).1)
    }
}

impl TlsConfigs {
    /// HTTP/2 before HTTP/1.1 unless it is not wanted, sessions that can be resumed, and client certificates that are asked for but not
    /// required.
    ///
    /// After a handshake, [`PeerVerifier::peer`] of the same `peers` says what the client's certificate is worth.
    pub(crate) fn new(
        options: &TlsOptions,
        shown: &Arc<ShownCertificates>,
        peers: &PeerVerifier,
    ) -> Result<TlsConfigs, CertificateError> {
        let builder = ServerConfig::builder_with_provider(options.provider())
            .with_protocol_versions(&options.versions())
            .map_err(CertificateError::Tls)?;
        let builder = match peers.during_handshake() {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(shown.at(None));
        config.ignore_client_order = true;
        config.alpn_protocols = options.protocols();
        // Tickets keep a session's state at the client, so that resumption takes no memory here, however many clients.
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(CertificateError::Tls)?;
        let at = |address| {
            let mut config = config.clone();
            config.cert_resolver = shown.at(Some(address));
            (address, Arc::new(config))
        };
        let by_address = shown.addresses().map(at).collect();
        Ok(TlsConfigs { general: Arc::new(config), by_address })
    }
}

/// A certificate to show, with its key, and as it stands in its file.
pub(crate) struct Shown {
    pub(crate) pair: Arc<CertifiedKey>,
    pub(crate) pem: String,
}

/// The key is that of the certificate, so it is the same one too.
impl PartialEq for Shown {
    fn eq(&self, other: &Shown) -> bool {
        self.pem == other.pem
    }
}

impl Shown {
    /// The certificate and the key in `files`, which must belong together.
    pub(crate) fn read(files: &ServingFiles) -> Result<Shown, CertificateError> {
        let pem = read_required(&files.certificate)?;
        Shown::new(files, pem, &read_required(&files.key)?)
    }

    /// The same of the texts in `files`.
    pub(crate) fn new(files: &ServingFiles, pem: String, key_pem: &str) -> Result<Shown, CertificateError> {
        let chain = certificates(&files.certificate, &pem)?;
        let key = private_key(&files.key, key_pem)?;
        let pair = CertifiedKey::from_der(chain, key, &crypto_provider()).map_err(|source| match source {
            rustls::Error::InconsistentKeys(_) => {
                CertificateError::Mismatch { certificate: files.certificate.clone(), key: files.key.clone() }
            }
            other => CertificateError::malformed(&files.key, "private key", other),
        })?;
        Ok(Shown { pair: Arc::new(pair), pem })
    }
}

/// The certificates in the PEM file at `path` as authorities to trust (`--client-ca-file`).
pub(crate) fn authorities_from_pem_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let found = certificates(path, &read_required(path)?)?;
    // What nobody can be verified by is found out here, while whoever asked still has something else.
    ClientTrust::new(found.clone()).map_err(|source| CertificateError::malformed(path, "certificate", source))?;
    Ok(found)
}

/// The certificates in `pem`, the text of the file at `path`; at least one.
pub(crate) fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| CertificateError::malformed(path, "certificate", source))?;
    if found.is_empty() {
        return Err(CertificateError::malformed(path, "certificate", rustls_pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

/// The private key in `pem`, the text of the file at `path`.
pub(crate) fn private_key(path: &Path, pem: &str) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|source| CertificateError::malformed(path, "private key", source))
}
