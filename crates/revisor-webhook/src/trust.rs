//! [`Trust`]: whom to believe that it is the webhook.
//!
//! The checks, their order and their errors are those of Go, so that what works with Kubernetes works here and fails
//! with the same words. The chain itself is verified by webpki, which is stricter in one point that matters: it takes no
//! certificate of an authority for that of a server. Webhooks are often set up with exactly that, a self-signed
//! certificate that is its own bundle, or one made by a tool that marks everything as an authority. Those two cases are
//! judged here.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme, version,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_PKCS1_SHA1WITHRSA};
use x509_parser::parse_x509_certificate;

use crate::credentials::Identity;
use crate::{ClientConfigError, X509Error};

/// How many certificates a bundle may hold. Those of operating systems have about 150.
const MAX_BUNDLE: usize = 1000;

/// The authorities that may vouch for a webhook.
#[derive(Debug)]
pub(crate) struct Trust {
    anchors: Vec<CertificateDer<'static>>,
    /// None if no authority can be used at all.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Trust {
    /// Trust in the certificates of a bundle in PEM.
    pub(crate) fn bundle(pem: &[u8]) -> Result<Trust, ClientConfigError> {
        let refuse = |problem: String| ClientConfigError::CaBundle(problem);
        let anchors: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
            .take(MAX_BUNDLE + 1)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(error.to_string()))?;
        match anchors.len() {
            0 => Err(refuse("unable to parse bytes as PEM block".into())),
            1..=MAX_BUNDLE => Trust::new(anchors),
            _ => Err(refuse(format!("more than {MAX_BUNDLE} certificates"))),
        }
    }

    /// Trust in what the machine trusts. Reads files.
    ///
    /// Its own files and not a list that is built in: whom a machine trusts is for its operator to say, and Kubernetes
    /// asks the same files.
    pub(crate) fn system() -> Result<Trust, ClientConfigError> {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate of the system cannot be read");
        }
        Trust::new(found.certs)
    }

    fn new(anchors: Vec<CertificateDer<'static>>) -> Result<Trust, ClientConfigError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chains = chains(anchors.iter(), &provider)?;
        Ok(Trust { anchors, chains, provider })
    }

    /// The client's side of TLS with this trust: versions 1.2 and 1.3, and HTTP/2 before HTTP/1.1 if it is offered.
    pub(crate) fn client_config(
        self: Arc<Trust>,
        offers_http2: bool,
        identity: Option<Identity>,
    ) -> Result<ClientConfig, ClientConfigError> {
        let mut config = with_identity(self.verifying()?, identity)?;
        config.alpn_protocols = match offers_http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(config)
    }

    fn verifying(self: Arc<Trust>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, ClientConfigError> {
        let builder = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(|error| ClientConfigError::CaBundle(error.to_string()))?;
        Ok(builder.dangerous().with_custom_certificate_verifier(self))
    }

    fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), X509Error> {
        let (_, leaf) = parse_x509_certificate(end_entity).map_err(|_| X509Error::Malformed)?;
        check_validity(&leaf, now)?;
        let parsed = ParsedCertificate::try_from(end_entity).map_err(|_| X509Error::Malformed)?;
        verify_server_name(&parsed, server_name).map_err(|_| name_error(&leaf, server_name))?;

        if self.anchors.iter().any(|anchor| anchor == end_entity) {
            return check_usage(&leaf);
        }
        let shown = Shown { end_entity, intermediates, server_name, now };
        match self.chains.as_ref().map(|chains| shown.verify(chains)) {
            Some(Ok(())) => self.judge_anchors(&shown),
            Some(Err(Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            ))) if !leaf.is_ca() => Err(X509Error::NotForServers),
            _ => self.judge_issuer(&leaf, now),
        }
    }

    /// Whether an authority that is valid now vouches for what webpki let pass, and what is wrong with it if not: to webpki
    /// an authority is a name and a key, and never expires.
    fn judge_anchors(&self, shown: &Shown<'_>) -> Result<(), X509Error> {
        let checked = |anchor: &CertificateDer<'_>| match parse_x509_certificate(anchor) {
            Ok((_, authority)) => check_validity(&authority, shown.now),
            Err(_) => Err(X509Error::Malformed),
        };
        let (valid, invalid): (Vec<_>, Vec<_>) = self.anchors.iter().partition(|anchor| checked(anchor).is_ok());
        let vouch = |anchors: &[&CertificateDer<'static>]| {
            let chains = chains(anchors.iter().copied(), &self.provider).ok().flatten();
            chains.is_some_and(|chains| shown.verify(&chains).is_ok())
        };
        if invalid.is_empty() || vouch(&valid) {
            return Ok(());
        }
        let culprit = invalid.into_iter().find(|anchor| vouch(&[anchor]));
        culprit.map_or(Err(X509Error::UnknownAuthority { candidate: None }), checked)
    }

    /// Whether an authority of the bundle itself signed `leaf`, and what can be said about it if not.
    fn judge_issuer(&self, leaf: &X509Certificate<'_>, now: UnixTime) -> Result<(), X509Error> {
        let mut candidate = None;
        for anchor in &self.anchors {
            let Ok((_, issuer)) = parse_x509_certificate(anchor) else { continue };
            if issuer.subject().as_raw() != leaf.issuer().as_raw() {
                continue;
            }
            if leaf.verify_signature(Some(issuer.public_key())).is_err() {
                candidate.get_or_insert_with(|| (authority_name(&issuer), signature_problem(&issuer)));
                continue;
            }
            check_validity(&issuer, now)?;
            // Everything else was for webpki to say, and it said no. Only a leaf that is marked as an authority may be
            // let in here; constraints on names are not weighed, so an authority that has them does not count.
            let sound = leaf.signature_algorithm.algorithm != OID_PKCS1_SHA1WITHRSA;
            let constrained = !matches!(issuer.name_constraints(), Ok(None));
            if leaf.is_ca() && issuer.is_ca() && sound && !constrained {
                return check_usage(leaf);
            }
        }
        Err(X509Error::UnknownAuthority { candidate })
    }
}

/// The client's side of TLS for those who call something else than a webhook and trust in the same way: the certificates
/// of a bundle in PEM, or those that the machine trusts. `identity` is what the client shows of itself.
pub fn tls_client_config(
    ca_bundle: Option<&[u8]>,
    identity: Option<Identity>,
) -> Result<ClientConfig, ClientConfigError> {
    let trust = Arc::new(ca_bundle.map_or_else(Trust::system, Trust::bundle)?);
    with_identity(trust.verifying()?, identity)
}

/// The same for those who are told to believe whoever answers. What is sent to them is encrypted, and that is all.
pub fn unverified_tls_client_config(identity: Option<Identity>) -> Result<ClientConfig, ClientConfigError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(|error| ClientConfigError::CaBundle(error.to_string()))?;
    with_identity(builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))), identity)
}

/// Believes whoever answers, as long as they have the key of what they show.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a client shows of itself, if it shows anything.
fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<Identity>,
) -> Result<ClientConfig, ClientConfigError> {
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => {
            builder.with_client_auth_cert(chain, key).map_err(|error| ClientConfigError::Credentials(error.to_string()))
        }
    }
}

/// What a server showed, whom it was taken for, and when.
struct Shown<'a> {
    end_entity: &'a CertificateDer<'a>,
    intermediates: &'a [CertificateDer<'a>],
    server_name: &'a ServerName<'a>,
    now: UnixTime,
}

impl Shown<'_> {
    fn verify(&self, chains: &WebPkiServerVerifier) -> Result<(), Error> {
        let verified = chains.verify_server_cert(self.end_entity, self.intermediates, self.server_name, &[], self.now);
        verified.map(|_| ())
    }
}

/// What verifies chains that end in one of `anchors`; `None` if none of them can be an authority. That one cannot is no
/// error: it may still be the webhook's own certificate.
fn chains<'a>(
    anchors: impl Iterator<Item = &'a CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, ClientConfigError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(anchors.cloned());
    if roots.is_empty() {
        return Ok(None);
    }
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    builder.build().map(Some).map_err(|error| ClientConfigError::CaBundle(error.to_string()))
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.judge(end_entity, intermediates, server_name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(error) => Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn check_validity(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), X509Error> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let (begin, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    if now < begin {
        return Err(X509Error::NotYetValid { now, bound: begin });
    }
    if now > end {
        return Err(X509Error::Expired { now, bound: end });
    }
    Ok(())
}

/// Whether the certificate may be used by servers: it says so or says nothing of it.
fn check_usage(certificate: &X509Certificate<'_>) -> Result<(), X509Error> {
    match certificate.extended_key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(usage)) if usage.value.server_auth || usage.value.any => Ok(()),
        _ => Err(X509Error::NotForServers),
    }
}

fn name_error(certificate: &X509Certificate<'_>, wanted: &ServerName<'_>) -> X509Error {
    let names = certificate.subject_alternative_name().ok().flatten();
    let common_name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let host = wanted.to_str().into_owned();
    if names.is_none() && common_name.is_some_and(|name| name.eq_ignore_ascii_case(&host)) {
        return X509Error::CommonNameOnly;
    }
    let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let shown: Vec<String> = match wanted {
        ServerName::IpAddress(_) => names.iter().filter_map(address).map(|address| address.to_string()).collect(),
        _ => names.iter().filter_map(dns_name).map(ToOwned::to_owned).collect(),
    };
    match (shown.is_empty(), wanted) {
        (true, ServerName::IpAddress(_)) => X509Error::NoAddresses(host),
        (true, _) => X509Error::NoNames(host),
        (false, _) => X509Error::OtherNames { names: shown.join(", "), wanted: host },
    }
}

fn address(name: &GeneralName<'_>) -> Option<IpAddr> {
    let GeneralName::IPAddress(bytes) = name else { return None };
    <[u8; 4]>::try_from(*bytes).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok()
}

fn dns_name<'c>(name: &'c GeneralName<'_>) -> Option<&'c str> {
    match name {
        GeneralName::DNSName(name) => Some(name),
        _ => None,
    }
}

fn authority_name(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let name = subject.iter_common_name().chain(subject.iter_organization()).find_map(|name| name.as_str().ok());
    name.map_or_else(|| format!("serial:{}", certificate.serial), ToOwned::to_owned)
}

/// What Go says when a signature does not fit the key of this authority.
fn signature_problem(certificate: &X509Certificate<'_>) -> &'static str {
    let algorithm = &certificate.public_key().algorithm.algorithm;
    if *algorithm == OID_PKCS1_RSAENCRYPTION {
        "crypto/rsa: verification error"
    } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        "x509: ECDSA verification failure"
    } else {
        "x509: Ed25519 verification failure"
    }
}
