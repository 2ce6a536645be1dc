//! [`Credentials`]: who the server is to a webhook, and [`CredentialBook`], which has them by the webhook's address.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{ClientConfigError, Target};

/// What the server shows to a webhook to say who it is. All of it may be left out.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Credentials {
    /// A certificate and its chain in PEM, and its key in PEM.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// A bearer token.
    pub token: Option<String>,
    /// A user and their password; only without a token.
    pub basic: Option<(String, String)>,
}

/// A certificate chain and its key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Credentials {
    /// Whether all of it can be used.
    pub fn check(&self) -> Result<(), ClientConfigError> {
        self.identity()?;
        self.authorization()?;
        Ok(())
    }

    /// The certificate with its chain, and its key.
    pub fn identity(&self) -> Result<Option<Identity>, ClientConfigError> {
        let Some((chain, key)) = &self.certificate else { return Ok(None) };
        let refuse = |problem: String| ClientConfigError::Credentials(problem);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(format!("the client certificate is no PEM: {error}")))?;
        if chain.is_empty() {
            return Err(refuse("the client certificate holds no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| refuse(format!("the key of the client certificate is no PEM: {error}")))?;
        Ok(Some((chain, key)))
    }

    /// The header `Authorization`.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, ClientConfigError> {
        let text = match (&self.token, &self.basic) {
            (Some(token), _) => format!("Bearer {token}"),
            (None, Some((name, password))) => format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))),
            (None, None) => return Ok(None),
        };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ClientConfigError::Credentials("a token has characters that no header may have".to_owned()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets must not come into a log by way of a struct that has them.
        f.debug_struct("Credentials")
            .field("certificate", &self.certificate.is_some())
            .field("token", &self.token.is_some())
            .field("basic", &self.basic.is_some())
            .finish()
    }
}

/// Who the server is to which webhook, as the users of a kubeconfig say it: they have the names of hosts
/// (`webhook.example.com`, `name.namespace.svc:8443`), `*.` and the end of a name, or `*` for all others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CredentialBook {
    users: BTreeMap<String, Arc<Credentials>>,
    /// The user of the current context, for those for whom there is no other.
    current: Option<String>,
}

impl CredentialBook {
    /// The book of these users.
    pub fn new(users: impl IntoIterator<Item = (String, Credentials)>, current: Option<String>) -> CredentialBook {
        let users = users.into_iter().map(|(name, credentials)| (name, Arc::new(credentials))).collect();
        CredentialBook { users, current }
    }

    /// The credentials for a webhook (upstream: `defaultAuthenticationInfoResolver.clientConfig`).
    pub fn find(&self, target: &Target) -> Option<&Arc<Credentials>> {
        match target {
            Target::Service(service) => {
                self.find_host(&format!("{}.{}.svc", service.name, service.namespace), Some(service.port))
            }
            Target::Url(url) => {
                let uri: http::Uri = url.parse().ok()?;
                self.find_host(uri.host()?, uri.port_u16())
            }
        }
    }

    fn find_host(&self, host: &str, port: Option<u16>) -> Option<&Arc<Credentials>> {
        // A URL without a port is looked for without one.
        let full = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let bare = (port == Some(443)).then(|| host.to_owned());
        [Some(full), bare]
            .into_iter()
            .flatten()
            .find_map(|name| self.find_name(&name))
            .or_else(|| self.users.get("*"))
            .or_else(|| self.users.get(self.current.as_deref()?))
    }

    fn find_name(&self, name: &str) -> Option<&Arc<Credentials>> {
        let ends = name.match_indices('.').map(|(at, _)| format!("*{}", &name[at..]));
        self.users.get(name).or_else(|| ends.into_iter().find_map(|pattern| self.users.get(&pattern)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServiceReference;

    #[test]
    fn a_webhook_is_found_by_the_closest_name() {
        let user = |name: &str| {
            let token = Some(name.to_owned());
            (name.to_owned(), Credentials { token, ..Credentials::default() })
        };
        let names = ["a.example.com", "b.example.com:8443", "*.example.com", "hook.ns.svc", "*.svc:8443", "me"];
        let book = CredentialBook::new(names.map(user), Some("me".to_owned()));
        let url = |text: &str| Target::Url(text.to_owned());
        let service = |port| {
            let (namespace, name, path) = ("ns".to_owned(), "hook".to_owned(), String::new());
            Target::Service(ServiceReference { namespace, name, path, port })
        };
        for (target, want) in [
            (url("https://a.example.com/x"), "a.example.com"),
            (url("https://a.example.com:443"), "a.example.com"),
            (url("https://b.example.com:8443"), "b.example.com:8443"),
            (url("https://c.example.com"), "*.example.com"),
            (url("https://c.example.com:8443"), "me"),
            (url("https://d.org"), "me"),
            (service(443), "hook.ns.svc"),
            (service(8443), "*.svc:8443"),
        ] {
            assert_eq!(book.find(&target).and_then(|found| found.token.as_deref()), Some(want), "{target:?}");
        }
        let all = CredentialBook::new([user("*")], None);
        assert_eq!(all.find(&url("https://d.org")).and_then(|found| found.token.as_deref()), Some("*"));
        assert_eq!(CredentialBook::default().find(&url("https://d.org")), None);
    }

    #[test]
    fn credentials_that_cannot_be_used_are_told_at_once() {
        for (credentials, want) in [
            (Credentials::default(), None),
            (Credentials { token: Some("a\nb".to_owned()), ..Credentials::default() }, Some("characters")),
            (
                Credentials { certificate: Some((b"x".to_vec(), b"y".to_vec())), ..Credentials::default() },
                Some("holds no certificate"),
            ),
        ] {
            let checked = credentials.check().err().map(|error| error.to_string());
            assert_eq!(checked.is_some(), want.is_some(), "{checked:?}");
            assert!(want.is_none_or(|want| checked.is_some_and(|error| error.contains(want))), "{want:?}");
        }
    }
}
