//! [`Remote`]: an API server behind this one, and the way to it.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value};
use revisor_proxy::{ProxyClient, ProxyLimits, Target};
use revisor_registry::Registry;
use revisor_webhook::{Credentials, tls_client_config, unverified_tls_client_config};

/// The port of a service where none is given.
const DEFAULT_PORT: u16 = 443;

/// Where a server is and whom to believe that it is there, as its APIService says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    /// Certificates in PEM. Empty: those that the machine trusts.
    ca_bundle: Vec<u8>,
    skips_verification: bool,
}

/// An API server behind this one. It has connections and bounds of its own.
#[derive(Debug)]
pub struct Remote {
    pub(crate) whereabouts: Whereabouts,
    pub(crate) client: ProxyClient,
    /// The client's side of TLS, for what this server showed of itself when it was made.
    tls: Mutex<Option<Secured>>,
}

#[derive(Debug)]
struct Secured {
    credentials: Option<Arc<Credentials>>,
    config: Arc<rustls::ClientConfig>,
}

/// Why a server cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoWay {
    /// Its service leads nowhere, in the words that operators are to see.
    Unresolved(String),
    /// What its APIService says of trust cannot be used.
    Config(String),
}

impl Whereabouts {
    /// Reads the specification of an APIService; `None` if it is a local one.
    pub(crate) fn read(spec: &Object) -> Option<Whereabouts> {
        let service = spec.object("service")?;
        let text = |name| service.str(name).unwrap_or_default().to_owned();
        let port = service.get("port").and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok());
        Some(Whereabouts {
            namespace: text("namespace"),
            service: text("name"),
            port: port.filter(|port| *port != 0).unwrap_or(DEFAULT_PORT),
            ca_bundle: STANDARD.decode(spec.str("caBundle").unwrap_or_default()).unwrap_or_default(),
            skips_verification: spec.get("insecureSkipTLSVerify").and_then(Value::as_bool) == Some(true),
        })
    }
}

impl Remote {
    pub(crate) fn new(whereabouts: Whereabouts) -> Remote {
        let client = ProxyClient::new(ProxyLimits::default());
        Remote { whereabouts, client, tls: Mutex::default() }
    }

    /// Where it can be reached now. Its name is that of its service, wherever it is.
    pub(crate) fn target(
        &self,
        registry: &Registry,
        by_endpoints: bool,
        credentials: Option<Arc<Credentials>>,
    ) -> Result<Target, NoWay> {
        let Whereabouts { namespace, service, port, .. } = &self.whereabouts;
        let found = match by_endpoints {
            true => registry.service_endpoint(namespace, service, *port),
            false => registry.service_address(namespace, service, *port),
        };
        let endpoint = found.map_err(NoWay::Unresolved)?;
        let tls = self.tls(credentials).map_err(NoWay::Config)?;
        let name = format!("{service}.{namespace}.svc");
        Target::private(&endpoint.host, endpoint.port, &name, tls).map_err(|error| NoWay::Config(error.to_string()))
    }

    fn tls(&self, credentials: Option<Arc<Credentials>>) -> Result<Arc<rustls::ClientConfig>, String> {
        let mut kept = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.credentials == credentials) {
            return Ok(kept.config.clone());
        }
        let identity = credentials.as_deref().map_or(Ok(None), Credentials::identity);
        let bundle = Some(self.whereabouts.ca_bundle.as_slice()).filter(|bundle| !bundle.is_empty());
        let made = identity.and_then(|identity| match self.whereabouts.skips_verification {
            true => unverified_tls_client_config(identity),
            false => tls_client_config(bundle, identity),
        });
        let mut config = made.map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        *kept = Some(Secured { credentials, config: config.clone() });
        Ok(config)
    }
}
