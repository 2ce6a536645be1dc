//! [`CredentialLedger`]: the credentials that the folder's authority issued, and those of them that were taken back.
//!
//! A certificate is good until its end whatever becomes of it, so to take one back is to remember that. A credential is
//! its key: certificates that were renewed by themselves share one, and who has one of them has the key of all. So what
//! is taken back is the key, and with it every certificate that was ever issued for it, also before there was a ledger.
//! Of a certificate that somebody made by hand only the serial number is known.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;

use crate::certificate_authority::CLOCK_SKEW;
use crate::validity::Validity;

/// Far more than anybody issues. What has expired does not count.
const MOST: usize = 1000;

/// The number of a certificate, unique within its authority. Shown as OpenSSL shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Serial(Vec<u8>);

/// A text that is not the number of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the serial number of a certificate: hexadecimal digits, with or without colons")]
pub struct NotASerial(String);

impl FromStr for Serial {
    type Err = NotASerial;

    fn from_str(text: &str) -> Result<Serial, NotASerial> {
        let refused = || NotASerial(text.to_owned());
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        // Numbers of certificates have 20 bytes at most.
        if digits.is_empty() || digits.len() > 40 || !digits.len().is_multiple_of(2) {
            return Err(refused());
        }
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let byte = |pair: &[u8]| match (pair.first().and_then(digit), pair.last().and_then(digit)) {
            (Some(high), Some(low)) => u8::try_from(high << 4 | low).ok(),
            _ => None,
        };
        let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().ok_or_else(refused)?;
        Ok(Serial::of(&bytes))
    }
}

impl Serial {
    /// A number as it stands in a certificate, where a zero may precede it to say that it is positive.
    fn of(bytes: &[u8]) -> Serial {
        let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |first| &bytes[first..]);
        Serial(significant.to_vec())
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl From<Serial> for String {
    fn from(serial: Serial) -> String {
        serial.to_string()
    }
}

impl TryFrom<String> for Serial {
    type Error = NotASerial;

    fn try_from(text: String) -> Result<Serial, NotASerial> {
        text.parse()
    }
}

/// A credential that was issued, or at least taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// Whom it names; empty if only its number is known.
    pub name: String,
    /// The groups that it puts its holder into.
    pub groups: Vec<String>,
    /// Its number.
    pub serial: Serial,
    /// The digest of its public key.
    key: Option<String>,
    /// When it was issued.
    #[serde(with = "moment")]
    pub issued: Option<OffsetDateTime>,
    /// When it expires.
    #[serde(with = "moment")]
    pub expires: Option<OffsetDateTime>,
    /// When it was taken back.
    #[serde(with = "moment")]
    pub revoked: Option<OffsetDateTime>,
}

impl Credential {
    /// What a certificate that the authority issued says of itself.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Credential, x509_parser::nom::Err<X509Error>> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)?;
        let text =
            |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().ok().map(str::to_owned);
        let subject = parsed.subject();
        let validity = Validity::of(&parsed);
        Ok(Credential {
            name: subject.iter_common_name().last().and_then(text).unwrap_or_default(),
            groups: subject.iter_organization().filter_map(text).collect(),
            serial: Serial::of(parsed.raw_serial()),
            key: Some(key_digest(&parsed)),
            issued: Some((validity.from + CLOCK_SKEW).into()),
            expires: Some(validity.expires().into()),
            revoked: None,
        })
    }

    /// `revoked`, `expired` or `valid`.
    pub fn state(&self, now: SystemTime) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires < now => "expired",
            _ => "valid",
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CredentialLedger {
    credentials: Vec<Credential>,
}

impl CredentialLedger {
    pub(crate) fn parse(text: &str) -> Result<CredentialLedger, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub(crate) fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    /// Adds one that is not known, and forgets what expired: that is refused anyway. Answers whether it was not known.
    pub(crate) fn add(&mut self, mut credential: Credential, now: SystemTime) -> bool {
        if self.credentials.iter().any(|known| known.serial == credential.serial) {
            return false;
        }
        let same_key = |known: &&Credential| known.key.is_some() && known.key == credential.key;
        credential.revoked = self.credentials.iter().find(same_key).and_then(|known| known.revoked);
        self.credentials.retain(|known| known.expires.is_none_or(|expires| expires >= now));
        self.credentials.push(credential);
        true
    }

    /// Takes back the credential with this number, and all with its key. Answers those that were taken back.
    pub(crate) fn revoke(&mut self, serial: &Serial, now: SystemTime) -> Result<Vec<Credential>, TooManyCredentials> {
        let at = OffsetDateTime::from(now).replace_nanosecond(0).unwrap_or(now.into());
        let Some(known) = self.credentials.iter().find(|known| known.serial == *serial) else {
            if self.credentials.len() >= MOST {
                return Err(TooManyCredentials(MOST));
            }
            let unknown = Credential {
                name: String::new(),
                groups: Vec::new(),
                serial: serial.clone(),
                key: None,
                issued: None,
                expires: None,
                revoked: Some(at),
            };
            self.credentials.push(unknown.clone());
            return Ok(vec![unknown]);
        };
        let key = known.key.clone();
        let mut revoked = Vec::new();
        for known in &mut self.credentials {
            let is_meant = known.serial == *serial || (key.is_some() && known.key == key);
            if is_meant && known.revoked.is_none() {
                known.revoked = Some(at);
                revoked.push(known.clone());
            }
        }
        Ok(revoked)
    }

    /// What is refused because of this.
    pub(crate) fn revocations(&self) -> Revocations {
        let revoked = || self.credentials.iter().filter(|known| known.revoked.is_some());
        Revocations {
            serials: revoked().map(|known| known.serial.clone()).collect(),
            keys: revoked().filter_map(|known| known.key.clone()).collect(),
        }
    }
}

/// Nothing more can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no more than {0} credentials can be remembered")]
pub struct TooManyCredentials(usize);

/// Certificates that do not count any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Revocations {
    serials: HashSet<Serial>,
    keys: HashSet<String>,
}

impl Revocations {
    /// Whether this certificate was taken back. Its number counts only if one of `issuers` issued it, because others
    /// number as they like.
    pub(crate) fn contains(&self, certificate: &X509Certificate<'_>, issuers: &[Vec<u8>]) -> bool {
        let is_own = || issuers.iter().any(|issuer| issuer == certificate.issuer().as_raw());
        (!self.keys.is_empty() && self.keys.contains(&key_digest(certificate)))
            || (self.serials.contains(&Serial::of(certificate.raw_serial())) && is_own())
    }
}

fn key_digest(certificate: &X509Certificate<'_>) -> String {
    Sha256::digest(certificate.public_key().raw).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A moment, or none, as the ledger has it.
mod moment {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use time::OffsetDateTime;
    use time::format_description::well_known::Rfc3339;

    pub(super) fn serialize<S: Serializer>(moment: &Option<OffsetDateTime>, to: S) -> Result<S::Ok, S::Error> {
        moment.and_then(|moment| moment.format(&Rfc3339).ok()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OffsetDateTime>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests;
