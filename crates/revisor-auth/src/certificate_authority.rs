//! [`Authority`]: the root of trust of one server. It issues certificates and recognises those it issued.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::SecureRandom;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use time::OffsetDateTime;

use crate::certificates::CertificateError;
use crate::validity::Validity;
use crate::{crypto_provider, tls_config};

/// How long the certificate of an authority lives. Its end is the end of every kubeconfig that was copied before it was
/// renewed.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
/// How long other certificates live.
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Certificates are valid from a little before they are made, for clients whose clocks are behind.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);
/// What authorities are called that are made here.
const NAME: &str = "revisor-ca";

/// What a certificate is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// To be the server that is reached under these names.
    Server(&'a [ServerName<'static>]),
    /// To be the client that administers the server.
    Administrator,
}

/// A certificate authority and its key.
pub(crate) struct Authority {
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    issuer: Issuer<'static, KeyPair>,
    expires: SystemTime,
    renewal: Option<SystemTime>,
}

impl Authority {
    /// The certificate, in PEM, of a new authority with `key`.
    pub(crate) fn certificate_pem(key: &KeyPair, now: SystemTime) -> Result<String, CertificateError> {
        let mut params = params(NAME, None, now, now + AUTHORITY_LIFETIME)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        Ok(params.self_signed(key).map_err(CertificateError::Crypto)?.pem())
    }

    /// Whether the certificate in `pem`, the text of the file at `path`, was made here and has to be made again. The key
    /// stays, so whatever was issued before is as good before the new certificate as before the old one.
    pub(crate) fn needs_renewal(path: &Path, pem: &str, now: SystemTime) -> Result<bool, CertificateError> {
        let certificate = tls_config::certificates(path, pem)?.swap_remove(0);
        let validity = validity(path, &certificate)?;
        Ok(is_made_here(&certificate) && validity.ends_soon(now))
    }

    /// The authority whose certificate is `pem`, the text of the file at `path`, and whose key is `key`.
    pub(crate) fn open(path: &Path, pem: &str, key: KeyPair, now: SystemTime) -> Result<Authority, CertificateError> {
        let certificates = tls_config::certificates(path, pem)?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|source| CertificateError::malformed(path, "certificate", source))?;
        }
        let validity = validity(path, &certificates[0])?;
        if validity.until <= now {
            return Err(CertificateError::AuthorityExpired { path: path.to_owned() });
        }
        let renewal = is_made_here(&certificates[0]).then(|| validity.renewed_from());
        if renewal.is_none() && validity.ends_soon(now) {
            tracing::warn!(
                file = %path.display(),
                expires = %OffsetDateTime::from(validity.expires()),
                "the certificate authority was not made here and has to be renewed by whoever made it"
            );
        }
        let issuer = Issuer::from_ca_cert_der(&certificates[0], key)
            .map_err(|source| CertificateError::malformed(path, "certificate", source))?;
        Ok(Authority { certificates, roots, issuer, expires: validity.expires(), renewal })
    }

    /// When the authority's certificate is renewed; `None` if that is not for this program to do.
    pub(crate) fn renewal(&self) -> Option<SystemTime> {
        self.renewal
    }

    /// The certificates to trust, for whoever trusts this authority; its own first.
    pub(crate) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// A new certificate, in PEM, for the holder of `key`.
    pub(crate) fn issue(
        &self,
        purpose: Purpose<'_>,
        key: &KeyPair,
        now: SystemTime,
    ) -> Result<String, CertificateError> {
        // No longer than the authority: beyond its end the certificate would look valid and be refused.
        let expires = (now + LEAF_LIFETIME).min(self.expires);
        let mut params = match purpose {
            Purpose::Server(names) => {
                let mut params = params("kube-apiserver", None, now, expires)?;
                params.subject_alt_names = names.iter().map(alternative_name).collect::<Result<_, _>>()?;
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                params
            }
            Purpose::Administrator => {
                let mut params = params("kubernetes-admin", Some("system:masters"), now, expires)?;
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                params
            }
        };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate: Certificate = params.signed_by(key, &self.issuer).map_err(CertificateError::Crypto)?;
        Ok(certificate.pem())
    }

    /// When the certificates at `path`, which serve `purpose`, are to be issued again; `None` if that is now. Those that this
    /// authority never issued are an error: they are somebody's, and not to be replaced unasked.
    pub(crate) fn serves_until(
        &self,
        purpose: Purpose<'_>,
        path: &Path,
        chain: &[CertificateDer<'static>],
        now: SystemTime,
    ) -> Result<Option<SystemTime>, CertificateError> {
        let [leaf, intermediates @ ..] = chain else { return Ok(None) };
        let validity = validity(path, leaf)?;
        // Asked as of its own last moment, so that the answer is about who issued it, not about the time.
        let then = UnixTime::since_unix_epoch(validity.expires().duration_since(UNIX_EPOCH).unwrap_or_default());
        let parsed =
            ParsedCertificate::try_from(leaf).map_err(|e| CertificateError::malformed(path, "certificate", e))?;
        let provider = crypto_provider();
        let issued = match purpose {
            Purpose::Server(_) => verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.roots,
                intermediates,
                then,
                provider.signature_verification_algorithms.all,
            ),
            Purpose::Administrator => WebPkiClientVerifier::builder_with_provider(self.roots.clone().into(), provider)
                .build()
                .map_err(|source| rustls::Error::General(source.to_string()))
                .and_then(|verifier| verifier.verify_client_cert(leaf, intermediates, then))
                .map(|_| ()),
        };
        issued.map_err(|source| CertificateError::Foreign { path: path.to_owned(), source })?;
        let names = match purpose {
            Purpose::Server(names) => names,
            Purpose::Administrator => &[],
        };
        let covers_names = names.iter().all(|name| rustls::client::verify_server_name(&parsed, name).is_ok());
        // What lasts as long as the authority gains nothing by being issued again.
        let renewal = if validity.expires() < self.expires { validity.renewed_from() } else { validity.until };
        Ok((covers_names && validity.from <= now && now < renewal).then_some(renewal))
    }
}

fn params(
    name: &str,
    organization: Option<&str>,
    now: SystemTime,
    expires: SystemTime,
) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = OffsetDateTime::from(now - CLOCK_SKEW);
    params.not_after = OffsetDateTime::from(expires);
    params.serial_number = Some(serial_number(crypto_provider().secure_random)?);
    Ok(params)
}

/// A random serial number. Derived from the key, as the builder would do, it would be the same again when a
/// certificate is renewed, and some clients refuse two certificates of one authority with one number.
fn serial_number(random: &dyn SecureRandom) -> Result<SerialNumber, CertificateError> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes).map_err(|_| CertificateError::Tls(rustls::Error::FailedToGetRandomBytes))?;
    // Positive, and of full length, whatever the draw.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn alternative_name(name: &ServerName<'static>) -> Result<SanType, CertificateError> {
    match name {
        ServerName::DnsName(name) => {
            let name = name.as_ref().try_into().map_err(CertificateError::Crypto)?;
            Ok(SanType::DnsName(name))
        }
        ServerName::IpAddress(address) => Ok(SanType::IpAddress((*address).into())),
        other => Err(CertificateError::Name(format!("{other:?}"))),
    }
}

fn validity(path: &Path, certificate: &CertificateDer<'_>) -> Result<Validity, CertificateError> {
    Validity::read(certificate).map_err(|source| CertificateError::malformed(path, "certificate", source))
}

/// Whether a certificate is that of an authority that this program made, and not one that somebody brought.
fn is_made_here(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return false };
    let is_self_signed = parsed.subject() == parsed.issuer();
    is_self_signed && parsed.subject().iter_common_name().any(|name| name.as_str() == Ok(NAME))
}
