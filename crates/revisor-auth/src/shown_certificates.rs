//! [`ShownCertificates`]: which certificate the server shows to whom (`--tls-sni-cert-key`).
//!
//! The rules are those of the original and of the library below it: names that were given count before names that a
//! certificate has, whole names before wildcards, earlier pairs before later ones. For a name that nobody has, the first
//! certificate that is valid for it is shown, or else the default one. A client that names nobody reached an address,
//! and a pair may have been given for that.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use revisor_object::names::dns1123_subdomain;
use rustls::client::verify_server_name;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;
use x509_parser::extensions::GeneralName;

use crate::certificates::ServingFiles;

/// A certificate, its key and the names that it is shown to (`--tls-sni-cert-key`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFiles {
    /// The files.
    pub files: ServingFiles,
    /// The names, also addresses and wildcards; those that the certificate has if this is empty.
    pub names: Vec<String>,
}

/// Why a text does not name a pair of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamedFilesError {
    /// There are not two files.
    #[error("expected comma separated certificate and key file paths")]
    NotTwoFiles,
    /// Names are announced, and there are none.
    #[error("empty names list is not allowed")]
    NoNames,
}

impl FromStr for NamedFiles {
    type Err = NamedFilesError;

    fn from_str(text: &str) -> Result<NamedFiles, NamedFilesError> {
        let (files, names) = match text.split_once(':') {
            Some((_, names)) if names.trim().is_empty() => return Err(NamedFilesError::NoNames),
            Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
            None => (text, Vec::new()),
        };
        let parts: Vec<&str> = files.split(',').map(str::trim).collect();
        let [certificate, key] = parts.as_slice() else { return Err(NamedFilesError::NotTwoFiles) };
        Ok(NamedFiles { files: ServingFiles { certificate: certificate.into(), key: key.into() }, names })
    }
}

/// The certificates that a server shows.
#[derive(Debug)]
pub(crate) struct ShownCertificates {
    /// All of them, the default one first.
    all: Vec<Arc<CertifiedKey>>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

impl ShownCertificates {
    /// The certificate that is shown to everybody else, and those for certain names.
    pub(crate) fn new<'a>(
        default: Arc<CertifiedKey>,
        named: impl IntoIterator<Item = (Arc<CertifiedKey>, &'a [String])>,
    ) -> ShownCertificates {
        let mut all = vec![default];
        let (mut given, mut found) = (HashMap::new(), HashMap::new());
        for (certificate, names) in named {
            let own = if names.is_empty() { names_of(&certificate) } else { Vec::new() };
            // The first to have a name keeps it.
            for name in own {
                found.entry(name).or_insert_with(|| certificate.clone());
            }
            for name in names {
                given.entry(name.clone()).or_insert_with(|| certificate.clone());
            }
            all.push(certificate);
        }
        found.extend(given);
        ShownCertificates { all, by_name: found }
    }

    /// The certificate for everybody else.
    #[cfg(test)]
    pub(crate) fn default_certificate(&self) -> &CertifiedKey {
        &self.all[0]
    }

    /// The addresses for which certificates were given.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.by_name.keys().filter_map(|name| name.parse().ok())
    }

    /// Chooses for connections to `address`.
    pub(crate) fn at(self: &Arc<Self>, address: Option<IpAddr>) -> Arc<dyn ResolvesServerCert> {
        let nameless = address.and_then(|address| self.by_name.get(&address.to_string()));
        Arc::new(Chooser { nameless: nameless.unwrap_or(&self.all[0]).clone(), shown: self.clone() })
    }

    fn choose(&self, name: &str, is_usable: impl Fn(&CertifiedKey) -> bool) -> &Arc<CertifiedKey> {
        let name = name.to_lowercase();
        let wildcard = || format!("*.{}", name.split_once('.').map_or("", |(_, rest)| rest));
        if let Some(found) = self.by_name.get(&name).or_else(|| self.by_name.get(&wildcard())) {
            return found;
        }
        let wanted = ServerName::try_from(name.as_str());
        let fits = |certificate: &&Arc<CertifiedKey>| {
            let parsed = certificate.end_entity_cert().and_then(ParsedCertificate::try_from);
            let is_valid = parsed
                .is_ok_and(|parsed| wanted.as_ref().is_ok_and(|wanted| verify_server_name(&parsed, wanted).is_ok()));
            is_valid && is_usable(certificate)
        };
        self.all.iter().find(fits).unwrap_or(&self.all[0])
    }
}

/// Chooses for connections to one address.
#[derive(Debug)]
struct Chooser {
    nameless: Arc<CertifiedKey>,
    shown: Arc<ShownCertificates>,
}

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_usable = |certificate: &CertifiedKey| certificate.key.choose_scheme(hello.signature_schemes()).is_some();
        Some(match hello.server_name() {
            None => self.nameless.clone(),
            // With one certificate there is nothing to choose.
            Some(_) if self.shown.all.len() == 1 => self.nameless.clone(),
            Some(name) => self.shown.choose(name, is_usable).clone(),
        })
    }
}

/// The names that a certificate has: its common name, unless that is an address or no name at all, and the alternative
/// ones. Addresses are left out, because clients cannot ask for one.
fn names_of(certificate: &CertifiedKey) -> Vec<String> {
    let Ok(Ok((_, parsed))) = certificate.end_entity_cert().map(|own| x509_parser::parse_x509_certificate(own)) else {
        return Vec::new();
    };
    let common = parsed.subject().iter_common_name().last().and_then(|name| name.as_str().ok()).unwrap_or_default();
    let is_name = common == "*" || dns1123_subdomain(common.strip_prefix("*.").unwrap_or(common)).is_empty();
    let is_address = common.parse::<IpAddr>().is_ok();
    let mut names: Vec<String> = (is_name && !is_address).then(|| common.to_owned()).into_iter().collect();
    if let Ok(Some(alternatives)) = parsed.subject_alternative_name() {
        names.extend(alternatives.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls_pki_types::PrivateKeyDer;

    use super::*;
    use crate::crypto_provider;

    #[test]
    fn pairs_are_read_as_the_original_reads_them() {
        let pair = |names: &[&str]| {
            let files = ServingFiles { certificate: "a.crt".into(), key: "a.key".into() };
            Ok(NamedFiles { files, names: names.iter().map(|name| (*name).to_owned()).collect() })
        };
        for (text, want) in [
            ("a.crt,a.key", pair(&[])),
            (" a.crt , a.key ", pair(&[])),
            ("a.crt,a.key:*.foo.com,foo.com", pair(&["*.foo.com", "foo.com"])),
            ("a.crt,a.key: foo.com ", pair(&["foo.com"])),
            ("a.crt,a.key:::1", pair(&["::1"])),
            ("a.crt,a.key:", Err(NamedFilesError::NoNames)),
            ("a.crt", Err(NamedFilesError::NotTwoFiles)),
            ("a.crt,a.key,b", Err(NamedFilesError::NotTwoFiles)),
            ("", Err(NamedFilesError::NotTwoFiles)),
        ] {
            assert_eq!(text.parse::<NamedFiles>(), want, "{text}");
        }
    }

    fn certificate(common_name: &str, names: &[&str]) -> Arc<CertifiedKey> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are well-formed");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("certificates can be made").der().clone();
        let pair = CertifiedKey::from_der(vec![certificate], PrivateKeyDer::from(key), &crypto_provider());
        Arc::new(pair.expect("they fit"))
    }

    #[test]
    fn names_choose_certificates_as_in_the_original() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let (given, wild, hidden) = (names(&["foo.com", "10.0.0.1"]), names(&["*.foo.com"]), names(&["elsewhere.com"]));
        let shown = Arc::new(ShownCertificates::new(
            certificate("default", &["default.com"]),
            [
                (certificate("own", &["foo.com", "a.foo.com", "bar.com", "10.0.0.2"]), &[][..]),
                (certificate("given", &["x.com"]), &given),
                (certificate("wild", &["y.com"]), &wild),
                (certificate("later", &["foo.com", "bar.com"]), &[]),
                (certificate("127.0.0.1", &["hidden.com"]), &hidden),
            ],
        ));
        let position = |certificate: &Arc<CertifiedKey>| {
            let found = shown.all.iter().position(|one| Arc::ptr_eq(one, certificate)).expect("is one of them");
            ["default", "own", "given", "wild", "later", "hidden"][found]
        };
        for (name, want) in [
            ("foo.com", "given"),
            ("FOO.com", "given"),
            ("a.foo.com", "own"),
            ("b.foo.com", "wild"),
            ("a.b.foo.com", "default"),
            ("bar.com", "own"),
            ("own", "own"),
            ("later", "later"),
            ("elsewhere.com", "hidden"),
            ("hidden.com", "hidden"),
            ("default.com", "default"),
            ("unknown.com", "default"),
        ] {
            assert_eq!(position(shown.choose(name, |_| true)), want, "{name}");
        }
        assert_eq!(position(shown.choose("hidden.com", |_| false)), "default", "a client that cannot use it");
        let mut addresses: Vec<String> = shown.addresses().map(|address| address.to_string()).collect();
        addresses.sort();
        assert_eq!(addresses, ["10.0.0.1"], "addresses are given, never found");
    }
}
