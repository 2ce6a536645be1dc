//! What nodes may do: [`NodeRules`] decide by the rules that all nodes have, and by a [`NodeGraph`] of what a node's own pods
//! need. The rules and their words are those of the original's node authorizer.

mod graph;

use std::borrow::Cow;
use std::sync::RwLockReadGuard;

pub use graph::{NodeGraph, VertexKind};

use crate::{Attributes, Identity, PolicyRule, ResourceAttributes};

const USER_PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
const LEASES: &str = "kube-node-lease";

/// Keeps a graph of what the nodes have to do with, up to date whenever it is read.
pub trait NodeBook: Send + Sync + std::fmt::Debug {
    /// The graph as it is now.
    fn read(&self) -> RwLockReadGuard<'_, NodeGraph>;

    /// What all nodes may do, whatever runs on them.
    fn rules(&self) -> &[PolicyRule];

    /// Which features count.
    fn features(&self) -> NodeFeatures;
}

/// Feature gates on which it depends what nodes may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFeatures {
    /// `AuthorizeNodeWithSelectors`.
    pub selectors: bool,
    /// `KubeletServiceAccountTokenForCredentialProviders`.
    pub account_tokens: bool,
    /// `PodCertificateRequest`.
    pub pod_certificates: bool,
}

/// What is said of a request.
pub(crate) type Opinion = Result<(), Cow<'static, str>>;

/// The node that a user is, if it is one: empty if it does not say which (`NodeIdentity`).
pub fn node_identity(user: &Identity) -> Option<&str> {
    let name = user.name().strip_prefix(USER_PREFIX)?;
    user.groups().iter().any(|group| group == GROUP).then_some(name)
}

/// Whether a node may do what is asked; `None` if it is no node that asks.
pub(crate) fn authorize(book: &dyn NodeBook, asked: &Attributes<'_>) -> Option<Opinion> {
    let node = node_identity(asked.user)?;
    if node.is_empty() {
        return Some(Err(format!("unknown node for user {:?}", asked.user.name()).into()));
    }
    Some(Asking { book, node, asked }.decide())
}

struct Asking<'a> {
    book: &'a dyn NodeBook,
    node: &'a str,
    asked: &'a Attributes<'a>,
}

fn no(why: &'static str) -> Opinion {
    Err(why.into())
}

impl Asking<'_> {
    fn decide(&self) -> Opinion {
        let features = self.book.features();
        if let Some(target) = &self.asked.resource {
            match (target.group, target.resource) {
                ("", "secrets") => return self.read_namespaced(target, VertexKind::Secret),
                ("", "configmaps") => return self.read_namespaced(target, VertexKind::ConfigMap),
                ("", "persistentvolumeclaims") if target.subresource == Some("status") => {
                    return match self.asked.verb {
                        "update" | "patch" => self.related(target, VertexKind::PersistentVolumeClaim),
                        _ => no("can only get/update/patch this type"),
                    };
                }
                ("", "persistentvolumeclaims") => return self.get(target, VertexKind::PersistentVolumeClaim),
                ("", "persistentvolumes") => return self.get(target, VertexKind::PersistentVolume),
                ("resource.k8s.io", "resourceclaims") => return self.get(target, VertexKind::ResourceClaim),
                ("storage.k8s.io", "volumeattachments") => return self.get(target, VertexKind::VolumeAttachment),
                ("", "serviceaccounts") => return self.service_account(target, features),
                ("coordination.k8s.io", "leases") => return self.lease(target),
                ("storage.k8s.io", "csinodes") => return self.csi_node(target),
                ("resource.k8s.io", "resourceslices") => return self.resource_slice(target, features),
                ("", "nodes") if features.selectors => return self.node(target),
                ("", "pods") if features.selectors => return self.pod(target),
                ("certificates.k8s.io", "podcertificaterequests") => {
                    return match features.selectors && features.pod_certificates {
                        true => self.pod_certificate_request(target),
                        false => no(""),
                    };
                }
                _ => {}
            }
        }
        if self.book.rules().iter().any(|rule| rule.allows(self.asked)) { Ok(()) } else { no("") }
    }

    fn related(&self, target: &ResourceAttributes<'_>, kind: VertexKind) -> Opinion {
        let Some(name) = target.name.filter(|name| !name.is_empty()) else { return no("No Object name found") };
        let namespace = match kind {
            VertexKind::PersistentVolume | VertexKind::VolumeAttachment | VertexKind::ResourceSlice => "",
            _ => target.namespace.unwrap_or_default(),
        };
        if self.book.read().has_path(self.node, kind, namespace, name) {
            return Ok(());
        }
        Err(format!("no relationship found between node '{}' and this object", self.node).into())
    }

    fn get(&self, target: &ResourceAttributes<'_>, kind: VertexKind) -> Opinion {
        match (self.asked.verb, target.subresource) {
            ("get", None) => self.related(target, kind),
            ("get", Some(_)) => no("cannot get subresource"),
            _ => no("can only get individual resources of this type"),
        }
    }

    fn read_namespaced(&self, target: &ResourceAttributes<'_>, kind: VertexKind) -> Opinion {
        if !matches!(self.asked.verb, "get" | "list" | "watch") {
            return no("can only read resources of this type");
        }
        if target.subresource.is_some() {
            return no("cannot read subresource");
        }
        if target.namespace.unwrap_or_default().is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(target, kind)
    }

    fn service_account(&self, target: &ResourceAttributes<'_>, features: NodeFeatures) -> Opinion {
        let verb = self.asked.verb;
        if verb == "get" && target.subresource.is_none() {
            return match features.account_tokens || features.pod_certificates {
                true => self.read_namespaced(target, VertexKind::ServiceAccount),
                false => no("not allowed to get service accounts"),
            };
        }
        if verb != "create" || target.name.unwrap_or_default().is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if target.subresource != Some("token") {
            return no("can only create token subresource of serviceaccount");
        }
        self.related(target, VertexKind::ServiceAccount)
    }

    fn lease(&self, target: &ResourceAttributes<'_>) -> Opinion {
        let verb = self.asked.verb;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a node lease");
        }
        if target.namespace != Some(LEASES) {
            return Err(format!("can only access leases in the {LEASES:?} system namespace").into());
        }
        // Whose a new one is, admission sees.
        if verb != "create" && target.name != Some(self.node) {
            return no("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self, target: &ResourceAttributes<'_>) -> Opinion {
        let verb = self.asked.verb;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a CSINode");
        }
        if target.subresource.is_some() {
            return no("cannot authorize CSINode subresources");
        }
        if verb != "create" && target.name != Some(self.node) {
            return no("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn resource_slice(&self, target: &ResourceAttributes<'_>, features: NodeFeatures) -> Opinion {
        if target.subresource.is_some() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match self.asked.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(target, VertexKind::ResourceSlice),
            "watch" | "list" | "deletecollection" => {
                match !features.selectors || self.selects(target, "spec.nodeName") {
                    true => Ok(()),
                    false => no("can only list/watch/deletecollection resourceslices with nodeName field selector"),
                }
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn node(&self, target: &ResourceAttributes<'_>) -> Opinion {
        match (target.subresource, self.asked.verb) {
            (None, "create" | "update" | "patch") | (Some("status"), "update" | "patch") => Ok(()),
            (None, "get" | "list" | "watch") => match target.name.unwrap_or_default() {
                name if name == self.node => Ok(()),
                "" => Err(format!("node '{}' cannot read all nodes, only its own Node object", self.node).into()),
                name => Err(format!("node '{}' cannot read '{name}', only its own Node object", self.node).into()),
            },
            _ => no(""),
        }
    }

    fn pod(&self, target: &ResourceAttributes<'_>) -> Opinion {
        match (target.subresource, self.asked.verb) {
            (None, "get") => self.get(target, VertexKind::Pod),
            (None, "list" | "watch") if self.selects(target, "spec.nodeName") => Ok(()),
            (None, "list" | "watch") if target.name.is_some_and(|name| !name.is_empty()) => {
                self.related(target, VertexKind::Pod)
            }
            (None, "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
            // Whose they are, admission sees.
            (None, "create" | "delete") | (Some("status"), "update" | "patch") | (Some("eviction"), "create") => Ok(()),
            _ => no(""),
        }
    }

    fn pod_certificate_request(&self, target: &ResourceAttributes<'_>) -> Opinion {
        if target.subresource.is_some() {
            return no("nodes may not access the status subresource of PodCertificateRequests");
        }
        match self.asked.verb {
            "create" => Ok(()),
            "get" => self.related(target, VertexKind::PodCertificateRequest),
            "list" | "watch" => match self.selects(target, "spec.nodeName") {
                true => Ok(()),
                false => no("can only list/watch podcertificaterequests with nodeName field selector"),
            },
            verb => Err(format!("nodes may not {verb} podcertificaterequests").into()),
        }
    }

    /// Whether only objects are asked for whose field names this node.
    fn selects(&self, target: &ResourceAttributes<'_>, field: &str) -> bool {
        target.selectors.and_then(|selectors| selectors.fields.exact(field)) == Some(self.node)
    }
}
