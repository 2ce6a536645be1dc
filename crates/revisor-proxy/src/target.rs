//! [`Target`]: where requests are passed on to.

use std::sync::Arc;

use revisor_webhook::Privacy;
use rustls_pki_types::ServerName;

/// Somebody who listens.
#[derive(Debug, Clone)]
pub struct Target {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How they are spoken to in private; nothing for plain text.
    pub privacy: Option<Privacy>,
}

/// A host that cannot be spoken to in private because it has no name that a certificate could have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tls: either ServerName or InsecureSkipVerify must be specified in the tls.Config: {0:?}")]
pub struct TlsError(pub String);

impl Target {
    /// Somebody who is spoken to in plain text.
    pub fn plain(host: &str, port: u16) -> Target {
        Target { host: host.to_owned(), port, privacy: None }
    }

    /// Somebody who is spoken to in private, and has to be called `name`.
    pub fn private(host: &str, port: u16, name: &str, tls: Arc<rustls::ClientConfig>) -> Result<Target, TlsError> {
        let server_name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError(name.to_owned()))?;
        Ok(Target { host: host.to_owned(), port, privacy: Some(Privacy { server_name, tls }) })
    }

    /// The host and the port, as URLs have them.
    pub fn authority(&self) -> String {
        let Target { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.privacy.is_some() { "https" } else { "http" }
    }

    /// Whether a connection to the other is one to this.
    pub(crate) fn is_same(&self, other: &Target) -> bool {
        let is_same_privacy = match (&self.privacy, &other.privacy) {
            (None, None) => true,
            (Some(one), Some(two)) => one.server_name == two.server_name && Arc::ptr_eq(&one.tls, &two.tls),
            _ => false,
        };
        is_same_privacy && self.port == other.port && self.host == other.host
    }
}
