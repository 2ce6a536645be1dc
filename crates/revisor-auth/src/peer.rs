//! [`PeerVerifier`]: what the certificate of a client says about it, worked out once per connection.
//!
//! The original lets a client with a certificate that does not verify through the TLS handshake and answers its
//! requests with 401: the client then gets a reason instead of a broken connection, and may still hold a good token.
//! So the handshake here proves only that the client owns the key of the certificate it shows ([`Lenient`]), and
//! [`PeerVerifier::verify_peer`] decides afterwards whether that certificate means anything. It runs for resumed
//! sessions too, which would otherwise outlive their certificate.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use x509_parser::x509::AttributeTypeAndValue;

use crate::certificates::CertificateError;
use crate::{Claims, Identity, crypto_provider};

/// The key of [`Identity::extra`] that says which certificate was shown.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The attribute of a subject that holds the uid of a user.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// What the client's end of a connection proved about itself. Valid for all requests of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerIdentity {
    /// Nothing: no certificate was shown, or one that names nobody.
    Unknown,
    /// A certificate of an authority that the server trusts.
    Verified {
        /// Whom the certificate names.
        identity: Identity,
        /// When the certificate expires. A connection can live longer, so every request is held against it.
        expires: SystemTime,
    },
    /// A certificate that does not count, and why.
    Refused(Arc<str>),
}

/// Verifies the certificates of clients against the authorities that the server trusts.
#[derive(Debug, Clone)]
pub struct PeerVerifier {
    // `None` when no authority is trusted: no certificate is asked for then.
    inner: Option<Arc<dyn ClientCertVerifier>>,
}

impl PeerVerifier {
    /// A verifier that trusts `roots`. Without roots, clients are not asked for certificates.
    pub fn new(roots: RootCertStore) -> Result<PeerVerifier, CertificateError> {
        if roots.is_empty() {
            return Ok(PeerVerifier { inner: None });
        }
        let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
            .build()
            .map_err(|source| CertificateError::Tls(rustls::Error::General(source.to_string())))?;
        Ok(PeerVerifier { inner: Some(inner) })
    }

    /// What the certificates that a client showed say about it: the leaf first, then those that lead to a root, as
    /// `peer_certificates` of the connection returns them after the handshake.
    pub fn verify_peer(&self, chain: Option<&[CertificateDer<'_>]>, now: SystemTime) -> PeerIdentity {
        let (Some(inner), Some([leaf, intermediates @ ..])) = (&self.inner, chain) else {
            return PeerIdentity::Unknown;
        };
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Err(error) = inner.verify_client_cert(leaf, intermediates, UnixTime::since_unix_epoch(since_epoch)) {
            return PeerIdentity::Refused(error.to_string().into());
        }
        match named_by(leaf) {
            Ok(Some((identity, expires))) => PeerIdentity::Verified { identity, expires },
            Ok(None) => PeerIdentity::Unknown,
            Err(problem) => PeerIdentity::Refused(problem.into()),
        }
    }

    /// What rustls asks during the handshake; `None` when clients are not asked for certificates.
    pub(crate) fn during_handshake(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        self.inner.clone().map(|inner| Arc::new(Lenient(inner)) as Arc<dyn ClientCertVerifier>)
    }
}

/// Whom a verified certificate names, and until when: the common name is the user, organizations are its groups.
fn named_by(leaf: &CertificateDer<'_>) -> Result<Option<(Identity, SystemTime)>, String> {
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
    // A certificate that was verified has not expired, so its time lies after the epoch.
    let expires = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    Ok(Some((Identity::authenticated(Claims { name, uid, groups, extra }), UNIX_EPOCH + Duration::from_secs(expires))))
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
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName as Subject, DnType, KeyPair};

    use super::*;

    const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
    const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

    fn certificate(attributes: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = Subject::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().expect("keys can be made");
        params.self_signed(&key).expect("certificates can be made").der().clone()
    }

    #[test]
    fn subjects_become_identities() {
        type Want<'a> = Result<Option<(&'a str, Option<&'a str>, &'a [&'a str])>, &'a str>;
        let cn = DnType::CommonName;
        // Made by number because the builder keeps one value per kind, while real subjects have several groups.
        let (o, o2, uid) =
            (DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec()), DnType::from_oid(&UID));
        let cases: &[(&[(DnType, &str)], Want<'_>)] = &[
            (&[(cn.clone(), "bob")], Ok(Some(("bob", None, &["system:authenticated"])))),
            (
                &[(o.clone(), "dev"), (cn.clone(), "bob"), (o2, "ops")],
                Ok(Some(("bob", None, &["dev", "ops", "system:authenticated"]))),
            ),
            (&[(cn.clone(), "bob"), (uid.clone(), "7")], Ok(Some(("bob", Some("7"), &["system:authenticated"])))),
            (&[(o, "dev")], Ok(None)),
            (&[(cn.clone(), "")], Ok(None)),
            (&[(cn, "bob"), (uid, "")], Err("the uid in the subject of the certificate is empty")),
        ];
        for (attributes, want) in cases {
            let got = named_by(&certificate(attributes));
            let got = got.as_ref().map(|named| named.as_ref().map(|(who, _)| who)).map_err(String::as_str);
            assert_eq!(got.map(|who| who.map(|who| (who.name(), who.uid()))), want.map(|w| w.map(|w| (w.0, w.1))));
            if let (Ok(Some(got)), Ok(Some((_, _, groups)))) = (got, want) {
                assert_eq!(got.groups(), *groups);
            }
        }
    }

    #[test]
    fn an_identity_says_which_certificate_was_shown() {
        let leaf = certificate(&[(DnType::CommonName, "bob")]);
        let (identity, expires) = named_by(&leaf).expect("the certificate is fine").expect("it names somebody");
        let [(key, values)] = identity.extra() else { panic!("one extra: {identity:?}") };
        assert_eq!(key, "authentication.kubernetes.io/credential-id");
        let digest = values[0].strip_prefix("X509SHA256=").expect("the digest is labelled");
        assert!(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{digest}");
        // The builder's certificates are valid until the start of the year 4096.
        assert_eq!(expires, UNIX_EPOCH + Duration::from_secs(67_090_118_400));
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(named_by(&CertificateDer::from(vec![0x30, 0x03, 1])).is_err());
    }

    #[test]
    fn without_authorities_certificates_say_nothing() {
        let verifier = PeerVerifier::new(RootCertStore::empty()).expect("nothing can go wrong");
        let leaf = certificate(&[(DnType::CommonName, "bob")]);
        assert_eq!(verifier.verify_peer(Some(&[leaf]), SystemTime::now()), PeerIdentity::Unknown);
        assert!(verifier.during_handshake().is_none());
    }
}
