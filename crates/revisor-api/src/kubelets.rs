//! [`Kubelets`]: how the kubelets of nodes are reached (upstream: `kubelet/client`).

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use revisor_object::{Object, Value};
use revisor_proxy::{ProxyClient, ProxyLimits, Target, TlsError};
use revisor_webhook::{ClientConfigError, Credentials, tls_client_config, unverified_tls_client_config};

/// What a server knows of how kubelets are reached.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// What it shows of itself.
    pub credentials: Credentials,
    /// Who vouches for kubelets, in PEM; without one they are believed.
    pub authorities: Option<Vec<u8>>,
    /// Which addresses of nodes are used, in this order.
    pub address_types: Vec<String>,
    /// The port of kubelets that do not say where they listen.
    pub port: u16,
    /// How long it may take to be connected.
    pub timeout: Duration,
}

/// Reaches kubelets.
pub struct Kubelets {
    pub(crate) client: ProxyClient,
    address_types: Vec<String>,
    port: u16,
    tls: RwLock<Secured>,
}

#[derive(Clone)]
struct Secured {
    verified: Arc<rustls::ClientConfig>,
    /// For those who say that they do not care who answers.
    unverified: Arc<rustls::ClientConfig>,
}

/// Where a kubelet listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubeletAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// No address of a node is of a type that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoAddress(Vec<(String, String)>);

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = self.0.iter().map(|(kind, address)| format!("{{{kind} {address}}}")).collect();
        write!(f, "no preferred addresses found; known addresses: [{}]", known.join(" "))
    }
}

impl Kubelets {
    /// Ready to reach kubelets, if what is shown to them can be used.
    pub fn new(options: &KubeletOptions) -> Result<Kubelets, ClientConfigError> {
        let limits = ProxyLimits { idle: 250, connecting: options.timeout, ..ProxyLimits::default() };
        Ok(Kubelets {
            client: ProxyClient::new(limits),
            address_types: options.address_types.clone(),
            port: options.port,
            tls: RwLock::new(Secured::new(&options.credentials, options.authorities.as_deref())?),
        })
    }

    /// Shows another certificate from now on, and believes others.
    pub fn replace(&self, credentials: &Credentials, authorities: Option<&[u8]>) -> Result<(), ClientConfigError> {
        let secured = Secured::new(credentials, authorities)?;
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = secured;
        Ok(())
    }

    /// Where the kubelet of a node listens (upstream: `GetConnectionInfo`).
    pub(crate) fn address(&self, node: &Object) -> Result<KubeletAddress, NoAddress> {
        let empty = Object::new();
        let status = node.object("status").unwrap_or(&empty);
        let addresses = status.array("addresses").iter().filter_map(Value::as_object);
        let text = |address: &Object, name| address.str(name).unwrap_or_default().to_owned();
        let known: Vec<(String, String)> =
            addresses.map(|address| (text(address, "type"), text(address, "address"))).collect();
        let preferred = self.address_types.iter().find_map(|wanted| known.iter().find(|(kind, _)| kind == wanted));
        let Some((_, host)) = preferred else { return Err(NoAddress(known)) };
        let reported = status.at(&["daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_i64);
        let port = reported.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(self.port);
        Ok(KubeletAddress { host: host.clone(), port })
    }

    /// The kubelet at an address.
    pub(crate) fn target(&self, address: &KubeletAddress, is_verified: bool) -> Result<Target, TlsError> {
        let secured = self.tls.read().unwrap_or_else(PoisonError::into_inner).clone();
        let tls = if is_verified { secured.verified } else { secured.unverified };
        Target::private(&address.host, address.port, &address.host, tls)
    }
}

impl Secured {
    fn new(credentials: &Credentials, authorities: Option<&[u8]>) -> Result<Secured, ClientConfigError> {
        let unverified = Arc::new(over_http1(unverified_tls_client_config(credentials.identity()?)?));
        let verified = match authorities {
            Some(bundle) => Arc::new(over_http1(tls_client_config(Some(bundle), credentials.identity()?)?)),
            None => unverified.clone(),
        };
        Ok(Secured { verified, unverified })
    }
}

/// The same for those who speak HTTP/1.1 alone, which can be upgraded.
pub(crate) fn over_http1(mut config: rustls::ClientConfig) -> rustls::ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

impl fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelets").field("address_types", &self.address_types).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn nodes_are_reached_at_the_address_that_is_preferred() {
        let kubelets = Kubelets::new(&KubeletOptions {
            credentials: Credentials::default(),
            authorities: None,
            address_types: vec!["InternalIP".to_owned(), "Hostname".to_owned()],
            port: 10250,
            timeout: Duration::from_secs(5),
        })
        .expect("nothing is shown");
        let both = r#"[{"type":"Hostname","address":"n"},{"type":"InternalIP","address":"10.0.0.1"}]"#;
        for (addresses, port, want) in [
            (both, "", Ok(("10.0.0.1", 10250))),
            (both, r#","daemonEndpoints":{"kubeletEndpoint":{"Port":7}}"#, Ok(("10.0.0.1", 7))),
            (r#"[{"type":"Hostname","address":"n"}]"#, "", Ok(("n", 10250))),
            (
                r#"[{"type":"ExternalIP","address":"1.2.3.4"},{"type":"ExternalDNS","address":"x"}]"#,
                "",
                Err("no preferred addresses found; known addresses: [{ExternalIP 1.2.3.4} {ExternalDNS x}]"),
            ),
            ("[]", "", Err("no preferred addresses found; known addresses: []")),
        ] {
            let text = format!(r#"{{"status":{{"addresses":{addresses}{port}}}}}"#);
            let Value::Object(node) = parse_json(text.as_bytes()).expect("is JSON").value else { panic!("no object") };
            let found =
                kubelets.address(&node).map(|found| (found.host, found.port)).map_err(|error| error.to_string());
            assert_eq!(found, want.map(|(host, port)| (host.to_owned(), port)).map_err(str::to_owned), "{text}");
        }
    }
}
