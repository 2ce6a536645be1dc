//! [`ClientConfig`]: where a webhook is and whom to believe that it is there, as definitions and webhook
//! configurations say it.

use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::Object;

/// The port of a service where none is given.
const DEFAULT_PORT: u16 = 443;

/// Where a webhook is and which authorities may vouch for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where it is.
    pub target: Target,
    /// Certificates in PEM. Empty: those that the machine trusts.
    pub ca_bundle: Vec<u8>,
}

/// By where it is alone: that tells nearly all of them apart, and certificates are long.
impl Hash for ClientConfig {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.hash(state);
    }
}

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// At this URL. Its scheme is `https`; query and fragment are not used.
    Url(String),
    /// Behind this service.
    Service(ServiceReference),
}

/// A service and the path to ask there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The path; empty for the root.
    pub path: String,
    /// The port of the service.
    pub port: u16,
}

/// Why a webhook cannot be called as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientConfigError {
    /// There is neither a URL nor a service.
    #[error("webhook configuration must have either service or URL")]
    NoTarget,
    /// The URL cannot be used.
    #[error("Unparsable URL: {0}")]
    Url(String),
    /// The port is none.
    #[error("port is not valid: {0}")]
    Port(i64),
    /// The bundle holds no certificate that could be used.
    #[error("unable to load root certificates: {0}")]
    CaBundle(String),
    /// What the server would show to say who it is cannot be used.
    #[error("unable to use the client's credentials: {0}")]
    Credentials(String),
}

impl ClientConfig {
    /// Reads a `clientConfig` as it stands in a definition's conversion or in a webhook configuration.
    pub fn from_object(config: &Object) -> Result<ClientConfig, ClientConfigError> {
        let bundle = config.str("caBundle").unwrap_or_default();
        let ca_bundle = STANDARD.decode(bundle).map_err(|error| ClientConfigError::CaBundle(error.to_string()))?;
        // A bundle of white space names nobody, and so means the same as none.
        let ca_bundle = if ca_bundle.trim_ascii().is_empty() { Vec::new() } else { ca_bundle };
        let target = match (config.object("service"), config.str("url")) {
            (Some(service), _) => Target::Service(ServiceReference::from_object(service)?),
            (None, Some(url)) => Target::Url(url.to_owned()),
            (None, None) => return Err(ClientConfigError::NoTarget),
        };
        Ok(ClientConfig { target, ca_bundle })
    }
}

impl ServiceReference {
    fn from_object(service: &Object) -> Result<ServiceReference, ClientConfigError> {
        let text = |name| service.str(name).unwrap_or_default().to_owned();
        let port = match service.get("port").and_then(|port| port.as_i64()) {
            None | Some(0) => DEFAULT_PORT,
            Some(port) => u16::try_from(port).map_err(|_| ClientConfigError::Port(port))?,
        };
        Ok(ServiceReference { namespace: text("namespace"), name: text("name"), path: text("path"), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    fn read(text: &str) -> Result<ClientConfig, ClientConfigError> {
        let value = parse_json(text.as_bytes()).expect("the test's JSON is valid").value;
        ClientConfig::from_object(value.as_object().expect("the test's JSON is an object"))
    }

    #[test]
    fn a_config_is_a_url_or_a_service_with_a_bundle() {
        let service = |path: &str, port| {
            let (namespace, name) = ("ns".to_owned(), "hook".to_owned());
            Target::Service(ServiceReference { namespace, name, path: path.to_owned(), port })
        };
        for (text, target, bundle) in [
            (r#"{"url":"https://h/x"}"#, Target::Url("https://h/x".into()), ""),
            (r#"{"url":"https://h","caBundle":"YQ=="}"#, Target::Url("https://h".into()), "a"),
            (r#"{"url":"https://h","caBundle":"IAo="}"#, Target::Url("https://h".into()), ""),
            (r#"{"service":{"namespace":"ns","name":"hook"}}"#, service("", 443), ""),
            (r#"{"service":{"namespace":"ns","name":"hook","path":"/p","port":8443}}"#, service("/p", 8443), ""),
        ] {
            assert_eq!(read(text), Ok(ClientConfig { target, ca_bundle: bundle.into() }), "{text}");
        }
    }

    #[test]
    fn what_is_no_config_is_refused() {
        for (text, want) in [
            ("{}", "webhook configuration must have either service or URL"),
            (r#"{"service":{"namespace":"ns","name":"hook","port":65536}}"#, "port is not valid: 65536"),
            (r#"{"url":"https://h","caBundle":"a"}"#, "unable to load root certificates: Invalid input length: 1"),
        ] {
            assert_eq!(read(text).expect_err(text).to_string(), want, "{text}");
        }
    }
}
