//! Component statuses: a resource without storage. Whoever asks makes the server look how the scheduler, the controller
//! manager and its own store are doing.

mod probe;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_object::Value;
use revisor_store::{Draft, Entry, Key};
use revisor_version::Revision;

use crate::present::Presented;
use crate::read::{Got, ListItems, Listed, SharedFilter};
use crate::{Registry, RegistryError, Selection};

/// What is looked at, in the order of lists.
const COMPONENTS: [(&str, Component); 3] = [
    ("scheduler", Component::Server(10259)),
    ("controller-manager", Component::Server(10257)),
    ("etcd-0", Component::Store),
];

#[derive(Debug, Clone, Copy)]
enum Component {
    /// A program on this machine that serves `/healthz` at this port.
    Server(u16),
    /// The store of this server.
    Store,
}

/// How a component is doing.
struct Health {
    is_good: bool,
    message: String,
    error: String,
}

/// Whether a resource is one that is found out instead of being read.
pub(crate) fn is_found_out(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "componentstatuses"
}

impl Registry {
    /// The status of one component.
    pub(crate) async fn component_status(&self, resource: &Arc<Resource>, name: &str) -> Result<Got, RegistryError> {
        let known = COMPONENTS.iter().find(|(known, _)| *known == name);
        let (name, component) = known.ok_or_else(|| RegistryError::NoSuchComponent(name.to_owned()))?;
        let health = self.health_of(*component).await;
        Ok(Got { bytes: encode(resource, name, &health), item: None, served_at: None })
    }

    /// The statuses of all components that are selected. Versions and limits mean nothing here.
    pub(crate) async fn component_statuses(&self, resource: &Arc<Resource>, selection: &Selection) -> Listed {
        let filter = SharedFilter(selection.filter(resource));
        let healths = join_all(COMPONENTS.map(|(_, component)| self.health_of(component))).await;
        let items = COMPONENTS.iter().zip(healths).map(|((name, _), health)| {
            let draft = Draft::opaque(encode(resource, name, &health));
            Item::new(Arc::new(Entry::new(Key::new(resource.key(None, name)), Revision::FIRST, &draft)))
        });
        let items = items.filter(|item| filter.admits(item)).map(Presented::from).collect();
        Listed { revision: None, items: ListItems::Page(items), continue_token: None, remaining: None, footprint: None }
    }

    async fn health_of(&self, component: Component) -> Health {
        match component {
            Component::Server(port) => {
                let result = probe::probe(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
                let is_good = result.is_ok();
                Health { is_good, message: result.unwrap_or_else(|message| message), error: String::new() }
            }
            Component::Store => match self.cache.freshen().await {
                Ok(_) => Health { is_good: true, message: "ok".to_owned(), error: String::new() },
                Err(error) => Health { is_good: false, message: String::new(), error: error.to_string() },
            },
        }
    }
}

/// The bytes of a status, in the order in which the original writes them.
fn encode(resource: &Resource, name: &str, health: &Health) -> Bytes {
    let text = |text: &str| Value::from(text).to_json();
    let mut parts = format!(r#""type":"Healthy","status":"{}""#, if health.is_good { "True" } else { "False" });
    for (name, value) in [("message", &health.message), ("error", &health.error)] {
        if !value.is_empty() {
            parts.push_str(&format!(r#","{name}":{}"#, text(value)));
        }
    }
    let prefix = &resource.type_prefix;
    Bytes::from(format!(r#"{prefix}"metadata":{{"name":{}}},"conditions":[{{{parts}}}]}}"#, text(name)))
}
