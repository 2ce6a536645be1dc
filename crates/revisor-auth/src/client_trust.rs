//! [`ClientTrust`]: the authorities whose client certificates count, and what a certificate is worth before them.
//!
//! The library that verifies chains takes an authority for good whatever the time; to it, an authority is a name and a
//! key. The original asks every certificate of a chain, the authority's too. So a chain must hold before all
//! authorities, and again before those that are valid now.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::certificates::CertificateError;
use crate::credential_ledger::Revocations;
use crate::validity::Validity;
use crate::{crypto_provider, version_one};

/// The authorities whose client certificates count.
#[derive(Debug, Clone, Default)]
pub struct ClientTrust {
    authorities: Vec<(CertificateDer<'static>, Validity)>,
    /// Trusts all of them, whatever the time; `None` if there are none.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    revoked: Revocations,
    /// The names of the authorities whose numbers `revoked` means.
    own: Vec<Vec<u8>>,
}

impl ClientTrust {
    /// Trust in these authorities, each for as long as it is valid. Without any, no certificate is asked for.
    pub fn new(authorities: Vec<CertificateDer<'static>>) -> Result<ClientTrust, CertificateError> {
        let verifier = match authorities.as_slice() {
            [] => None,
            some => Some(verifier(some.iter()).map_err(CertificateError::Tls)?),
        };
        let dated = |authority: CertificateDer<'static>| match Validity::read(&authority) {
            Ok(validity) => Ok((authority, validity)),
            Err(error) => Err(CertificateError::Tls(rustls::Error::General(error.to_string()))),
        };
        let authorities = authorities.into_iter().map(dated).collect::<Result<_, _>>()?;
        Ok(ClientTrust { authorities, verifier, ..ClientTrust::default() })
    }

    /// The same, but not in what was taken back of that which `own` issued.
    pub(crate) fn without(self, revoked: Revocations, own: &[CertificateDer<'_>]) -> ClientTrust {
        let name = |authority: &CertificateDer<'_>| {
            let (_, parsed) = x509_parser::parse_x509_certificate(authority).ok()?;
            Some(parsed.subject().as_raw().to_vec())
        };
        ClientTrust { revoked, own: own.iter().filter_map(name).collect(), ..self }
    }

    /// Who vouches for certificates in general; `None` if nobody does.
    pub(crate) fn verifier(&self) -> Option<&Arc<dyn ClientCertVerifier>> {
        self.verifier.as_ref()
    }

    /// Why the certificates that a client showed, its own first, do not count now.
    pub(crate) fn check(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<(), Arc<str>> {
        let ([leaf, intermediates @ ..], Some(everybody)) = (chain, &self.verifier) else {
            return Err("no authority is trusted".into());
        };
        let since_epoch = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let refused = |error: rustls::Error| Arc::from(error.to_string());
        let is_version_one = version_one::is_version_one(leaf);
        if is_version_one {
            let valid = self.authorities.iter().filter(|(_, validity)| validity.contains(now));
            version_one::check(leaf, intermediates, valid.map(|(authority, _)| authority), now)?;
        } else {
            everybody.verify_client_cert(leaf, intermediates, since_epoch).map_err(refused)?;
        }
        // One on the way to an authority counts too: whoever holds it could make themselves new ones.
        let parsed = chain.iter().filter_map(|certificate| x509_parser::parse_x509_certificate(certificate).ok());
        if parsed.into_iter().any(|(_, parsed)| self.revoked.contains(&parsed, &self.own)) {
            return Err("the certificate was revoked".into());
        }
        if is_version_one || self.authorities.iter().all(|(_, validity)| validity.contains(now)) {
            return Ok(());
        }
        let valid = self.authorities.iter().filter(|(_, validity)| validity.contains(now));
        verifier(valid.map(|(authority, _)| authority))
            .and_then(|valid| valid.verify_client_cert(leaf, intermediates, since_epoch))
            .map_err(|_| "the authority of the certificate has expired, or is not valid yet")?;
        Ok(())
    }

    /// The time around `now` during which [`ClientTrust::check`] says the same of a chain.
    pub(crate) fn unchanged_around(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Validity {
        let shown = chain.iter().filter_map(|certificate| Validity::read(certificate).ok());
        Validity::unchanged_around(now, shown.chain(self.authorities.iter().map(|(_, validity)| *validity)))
    }
}

fn verifier<'a>(
    authorities: impl Iterator<Item = &'a CertificateDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
        .build()
        .map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
        .map_err(|error| rustls::Error::General(error.to_string()))
}
