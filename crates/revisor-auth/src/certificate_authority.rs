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
use crate::{crypto_provider, tls_config};

/// How long an authority lives. Its end is the end of every certificate and kubeconfig it stands behind.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
/// How long other certificates live.
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Certificates are valid from a little before they are made, for clients whose clocks are behind.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);
/// A certificate with less time left than this is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

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
    certificate: CertificateDer<'static>,
    roots: RootCertStore,
    issuer: Issuer<'static, KeyPair>,
    expires: SystemTime,
}

/// From when until when a certificate is valid.
struct Validity {
    starts: SystemTime,
    expires: SystemTime,
}

impl Authority {
    /// The certificate, in PEM, of a new authority with `key`.
    pub(crate) fn certificate_pem(key: &KeyPair, now: SystemTime) -> Result<String, CertificateError> {
        let mut params = params("revisor-ca", None, now, now + AUTHORITY_LIFETIME)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        Ok(params.self_signed(key).map_err(CertificateError::Crypto)?.pem())
    }

    /// The authority whose certificate is `pem`, the text of the file at `path`, and whose key is `key`.
    pub(crate) fn open(path: &Path, pem: &str, key: KeyPair, now: SystemTime) -> Result<Authority, CertificateError> {
        let certificate = tls_config::certificates(path, pem)?.swap_remove(0);
        let roots = tls_config::roots(path, pem)?;
        let expires = validity(path, &certificate)?.expires;
        if expires < now {
            return Err(CertificateError::AuthorityExpired { path: path.to_owned() });
        }
        if expires < now + RENEW_BEFORE {
            tracing::warn!(file = %path.display(), "the certificate authority expires in less than 30 days");
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|source| CertificateError::malformed(path, "certificate", source))?;
        Ok(Authority { certificate, roots, issuer, expires })
    }

    /// The authority's certificate.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificates to trust, for whoever trusts this authority.
    pub(crate) fn roots(&self) -> &RootCertStore {
        &self.roots
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

    /// Whether the certificates at `path` still serve `purpose`, or have to be issued again. Those that this
    /// authority never issued are an error: they are somebody's, and not to be replaced unasked.
    pub(crate) fn still_serves(
        &self,
        purpose: Purpose<'_>,
        path: &Path,
        chain: &[CertificateDer<'static>],
        now: SystemTime,
    ) -> Result<bool, CertificateError> {
        let [leaf, intermediates @ ..] = chain else { return Ok(false) };
        let validity = validity(path, leaf)?;
        // Asked as of its own last moment, so that the answer is about who issued it, not about the time.
        let then = UnixTime::since_unix_epoch(validity.expires.duration_since(UNIX_EPOCH).unwrap_or_default());
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
        Ok(covers_names && validity.starts <= now && validity.expires >= now + RENEW_BEFORE)
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
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|source| CertificateError::malformed(path, "certificate", source))?;
    let time = |timestamp: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(timestamp).unwrap_or(0));
    let validity = parsed.validity();
    Ok(Validity { starts: time(validity.not_before.timestamp()), expires: time(validity.not_after.timestamp()) })
}
