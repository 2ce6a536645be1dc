//! [`Peer`]: what the certificate of a client says about it, asked anew when the answer may have changed.
//!
//! The original lets a client with a certificate that does not verify through the TLS handshake and answers its
//! requests with 401: the client then gets a reason instead of a broken connection, and may still hold a good token.
//! So the handshake here proves only that the client owns the key of the certificate it shows ([`Lenient`]), and
//! [`Peer::identity`] decides for each request whether that certificate means anything.
//!
//! To verify a chain takes longer than most requests, so the verdict is kept. It depends on the chain, on whom the
//! server trusts and on which of the certificates are valid; it is good until one of these changes. So a connection
//! outlives neither its certificate nor the authority that vouches for it, nor the server's trust in it, and a resumed
//! session does not either (T1).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use x509_parser::x509::AttributeTypeAndValue;

use crate::client_trust::ClientTrust;
use crate::validity::Validity;
use crate::{Claims, Identity, version_one};

/// The key of [`Identity::extra`] that says which certificate was shown.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The attribute of a subject that holds the uid of a user.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// What the client's end of a connection proved about itself, as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerIdentity {
    /// Nothing: no certificate was shown, or one that names nobody.
    Unknown,
    /// A certificate of an authority that the server trusts, and whom it names.
    Verified(Identity),
    /// A certificate that does not count, and why.
    Refused(Arc<str>),
}

/// Verifies the certificates of clients against the authorities that the server trusts at the time.
#[derive(Debug, Clone)]
pub struct PeerVerifier {
    trust: watch::Sender<ClientTrust>,
}

/// The client's end of one connection.
#[derive(Debug)]
pub struct Peer {
    /// The certificates that it showed, its own first.
    chain: Vec<CertificateDer<'static>>,
    /// `None` for a client that showed none, so that it never waits here.
    judged: Option<Mutex<Judged>>,
    /// When its own certificate ends; found out when somebody asks.
    expiry: OnceLock<Option<SystemTime>>,
}

/// What was last found out about a client.
#[derive(Debug)]
struct Judged {
    trust: watch::Receiver<ClientTrust>,
    verdict: Option<Verdict>,
}

#[derive(Debug)]
struct Verdict {
    identity: PeerIdentity,
    /// When it was, and will be, the same.
    during: Validity,
}

impl PeerVerifier {
    /// A verifier that trusts whom `trust` names.
    pub fn new(trust: ClientTrust) -> PeerVerifier {
        PeerVerifier { trust: watch::Sender::new(trust) }
    }

    /// Trusts whom `trust` names from now on, and nobody else, also on connections that are open.
    pub fn replace(&self, trust: ClientTrust) {
        self.trust.send_replace(trust);
    }

    /// The client of a connection that showed these certificates: its own first, then those that lead to an authority,
    /// as `peer_certificates` of the connection returns them after the handshake.
    pub fn peer(&self, chain: &[CertificateDer<'static>]) -> Peer {
        let judged = || Mutex::new(Judged { trust: self.trust.subscribe(), verdict: None });
        Peer { chain: chain.to_vec(), judged: (!chain.is_empty()).then(judged), expiry: OnceLock::new() }
    }

    /// What rustls asks during the handshake; `None` when clients are not asked for certificates.
    pub(crate) fn during_handshake(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        let verifier = self.trust.borrow().verifier().cloned();
        verifier.map(|verifier| Arc::new(Lenient(verifier)) as Arc<dyn ClientCertVerifier>)
    }
}

impl Peer {
    /// Whom the client proved to be, as of `now`.
    pub fn identity(&self, now: SystemTime) -> PeerIdentity {
        let Some(judged) = &self.judged else { return PeerIdentity::Unknown };
        let mut judged = judged.lock().unwrap_or_else(PoisonError::into_inner);
        // Upholds T1. When the verifier is gone, its last word stays.
        let is_trust_new = judged.trust.has_changed().unwrap_or(false);
        match &judged.verdict {
            Some(verdict) if !is_trust_new && verdict.during.contains(now) => verdict.identity.clone(),
            _ => {
                let verdict = judge(&judged.trust.borrow_and_update(), &self.chain, now);
                judged.verdict.insert(verdict).identity.clone()
            }
        }
    }
}

impl Peer {
    /// When the certificate that it showed ends; `None` if it showed none.
    pub fn expiry(&self) -> Option<SystemTime> {
        *self.expiry.get_or_init(|| {
            let (_, certificate) = x509_parser::parse_x509_certificate(self.chain.first()?).ok()?;
            let seconds = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        })
    }

    /// Completes when the server does not trust a client any more whom it believes now; `None` if there is no certificate
    /// to be believed. For answers that last: others ask [`Peer::identity`] often enough.
    pub fn distrusted(
        self: Arc<Self>,
        now: impl Fn() -> SystemTime + Send + 'static,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        if !matches!(self.identity(now()), PeerIdentity::Verified(_)) {
            return None;
        }
        // Has seen what the verdict is based on, and nothing later.
        let mut trust = self.judged.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).trust.clone();
        Some(async move {
            while trust.changed().await.is_ok() {
                if !matches!(self.identity(now()), PeerIdentity::Verified(_)) {
                    return;
                }
            }
            std::future::pending().await
        })
    }
}

fn judge(trust: &ClientTrust, chain: &[CertificateDer<'_>], now: SystemTime) -> Verdict {
    let during = trust.unchanged_around(chain, now);
    let (Some(leaf), Some(_)) = (chain.first(), trust.verifier()) else {
        return Verdict { identity: PeerIdentity::Unknown, during };
    };
    let identity = match trust.check(chain, now) {
        Err(problem) => PeerIdentity::Refused(problem),
        Ok(()) => match named_by(leaf) {
            Ok(Some(identity)) => PeerIdentity::Verified(identity),
            Ok(None) => PeerIdentity::Unknown,
            Err(problem) => PeerIdentity::Refused(problem.into()),
        },
    };
    Verdict { identity, during }
}

/// Whom a verified certificate names: the common name is the user, organizations are its groups.
fn named_by(leaf: &CertificateDer<'_>) -> Result<Option<Identity>, String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(leaf)
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let subject = certificate.subject();
    // Of several common names the last one counts, as for the original.
    let name = subject.iter_common_name().last().map(|name| text(name, "common name")).transpose()?;
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let groups = subject.iter_organization().map(|group| text(group, "organization")).collect::<Result<_, _>>()?;
    let mut uids = subject.iter_attributes().filter(|attribute| attribute.attr_type().to_id_string() == UID_ATTRIBUTE);
    let uid = uids.next().map(|uid| text(uid, "uid")).transpose()?;
    if uids.next().is_some() {
        return Err("the subject of the certificate has more than one uid".to_owned());
    }
    if uid.as_deref() == Some("") {
        return Err("the uid in the subject of the certificate is empty".to_owned());
    }
    let digest: String = Sha256::digest(leaf.as_ref()).iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = vec![(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")])];
    Ok(Some(Identity::authenticated(Claims { name, uid, groups, extra })))
}

fn text(attribute: &AttributeTypeAndValue<'_>, what: &str) -> Result<String, String> {
    let text = attribute.as_str().map_err(|_| format!("the {what} in the subject of the certificate is no text"))?;
    Ok(text.to_owned())
}

/// Lets every certificate through the handshake, provided that the client owns its key.
#[derive(Debug)]
struct Lenient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Nothing is believed because of this: see the head of this file.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if version_one::is_version_one(cert) {
            return version_one::verify_tls12_signature(message, cert, dss);
        }
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if version_one::is_version_one(cert) {
            return version_one::verify_tls13_signature(message, cert, dss);
        }
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
