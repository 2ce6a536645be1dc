//! How the server speaks TLS: which versions, protocols and ciphers, and that it asks for client certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{RootCertStore, ServerConfig, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::certificates::{CertificateError, read_required};
use crate::peer::PeerVerifier;

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

/// The server's side of TLS: versions 1.2 and 1.3, HTTP/2 before HTTP/1.1, sessions that can be resumed, and client
/// certificates that are asked for but not required.
///
/// After a handshake, [`PeerVerifier::verify_peer`] of the same `peers` says what the client's certificate is worth.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    peers: &PeerVerifier,
) -> Result<Arc<ServerConfig>, CertificateError> {
    let builder = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(CertificateError::Tls)?;
    let builder = match peers.during_handshake() {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(CertificateError::Tls)?;
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Tickets keep a session's state at the client, so that resumption takes no memory here, however many clients.
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(CertificateError::Tls)?;
    Ok(Arc::new(config))
}

/// The certificates in the PEM file at `path` as authorities to trust (`--client-ca-file`).
pub fn roots_from_pem_file(path: &Path) -> Result<RootCertStore, CertificateError> {
    roots(path, &read_required(path)?)
}

/// The certificates in `pem`, the text of the file at `path`, as authorities to trust.
pub(crate) fn roots(path: &Path, pem: &str) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots.add(certificate).map_err(|source| CertificateError::malformed(path, "certificate", source))?;
    }
    Ok(roots)
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
