//! NodeRestriction: a kubelet changes its own node and the pods that run there, and nothing else, whatever its roles
//! allow.

mod nodes;
mod pods;
mod tokens;

use revisor_catalog::{Feature, RequestedSubject, Requester};
use revisor_object::{Object, Value};

use super::pod_fields::{MIRROR, annotations};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const USER_PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
const NODE_LEASES: &str = "kube-node-lease";

/// Those who sign for nodes.
const NODE_SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

pub(super) struct NodeRestriction;

impl Admission for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update | Operation::Delete)
    }

    fn admit(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        let Some(node) = node_of(attributes.requester) else { return Ok(()) };
        if node.is_empty() {
            let user = attributes.requester.name;
            return Err(attributes.forbidden(format!("could not determine node from user {user:?}")));
        }
        let request = Request { registry, attributes, node, object };
        match (attributes.resource.name(), attributes.subresource) {
            (("", "pods"), None) => request.admit_pod(),
            (("", "pods"), Some("status")) => request.admit_pod_status(),
            (("", "pods"), Some("eviction")) => request.admit_eviction(),
            (("", "pods"), Some(other)) => request
                .refuse(format!("unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed")),
            (("", "nodes"), _) => request.admit_node(),
            (("", "persistentvolumeclaims"), Some("status")) => request.admit_claim_status(),
            (("", "persistentvolumeclaims"), _) => request.refuse("may only update PVC status"),
            (("", "serviceaccounts"), Some("token")) if attributes.operation == Operation::Create => {
                request.admit_token()
            }
            (("certificates.k8s.io", "podcertificaterequests"), _) => request.admit_pod_certificate_request(),
            (("coordination.k8s.io", "leases"), _) => request.admit_lease(),
            (("storage.k8s.io", "csinodes"), _) => {
                request.only_its_own("can only access CSINode with the same name as the requesting node")
            }
            (("resource.k8s.io", "resourceslices"), _) => request.admit_resource_slice(),
            (("certificates.k8s.io", "certificatesigningrequests"), _) => request.admit_signing_request(),
            _ => Ok(()),
        }
    }
}

/// The node that somebody acts for; `None` if they do not act for one (upstream: `NodeIdentity`).
fn node_of(requester: Requester<'_>) -> Option<&str> {
    let node = requester.name.strip_prefix(USER_PREFIX)?;
    requester.groups.iter().any(|group| group == GROUP).then_some(node)
}

/// What a node asks for.
struct Request<'a> {
    registry: &'a Registry,
    attributes: &'a Attributes<'a>,
    node: &'a str,
    object: &'a Object,
}

impl Request<'_> {
    fn refuse(&self, why: impl Into<String>) -> Result<(), RegistryError> {
        Err(self.attributes.forbidden(why))
    }

    fn unexpected_operation(&self) -> Result<(), RegistryError> {
        self.refuse(format!("unexpected operation {:?}", self.attributes.operation.as_str()))
    }

    /// An object of the core group that must be there.
    fn found(&self, plural: &str, namespace: Option<&str>, name: &str) -> Result<Object, RegistryError> {
        self.registry.stored("", "v1", plural, namespace, name).ok_or_else(|| {
            match self.registry.known("", "v1", plural) {
                Some(resource) => RegistryError::not_found(resource, name),
                None => RegistryError::Undecided(format!("{plural} {name:?} not found")),
            }
        })
    }

    fn only_its_own(&self, why: &str) -> Result<(), RegistryError> {
        if self.attributes.name == self.node { Ok(()) } else { self.refuse(why) }
    }

    fn admit_lease(&self) -> Result<(), RegistryError> {
        if self.attributes.namespace != Some(NODE_LEASES) {
            return self.refuse(format!("can only access leases in the {NODE_LEASES:?} system namespace"));
        }
        self.only_its_own("can only access node lease with the same name as the requesting node")
    }

    fn admit_resource_slice(&self) -> Result<(), RegistryError> {
        let (slice, verb) = match self.attributes.operation {
            Operation::Create => (Some(self.object), "create"),
            Operation::Delete => (self.attributes.old, "delete"),
            _ => return Ok(()),
        };
        if slice.map(|slice| text_at(slice, &["spec", "nodeName"])) == Some(self.node) {
            return Ok(());
        }
        self.refuse(format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
    }

    fn admit_signing_request(&self) -> Result<(), RegistryError> {
        let features = self.registry.catalog.features();
        let signer = text_at(self.object, &["spec", "signerName"]);
        if features.has(Feature::AllowInsecureKubeletCertificateSigningRequests)
            || self.attributes.operation != Operation::Create
            || !NODE_SIGNERS.contains(&signer)
        {
            return Ok(());
        }
        let subject = match RequestedSubject::of(text_at(self.object, &["spec", "request"])) {
            Ok(subject) => subject,
            Err(error) => return self.refuse(format!("unable to parse csr: {error}")),
        };
        let node = self.node;
        if subject.common_name != format!("{USER_PREFIX}{node}") {
            return self.refuse(format!("can only create a node CSR with CN={USER_PREFIX}{node}"));
        }
        Ok(())
    }

    /// What a request for a pod's certificate says of its pod, account and node must be so.
    fn admit_pod_certificate_request(&self) -> Result<(), RegistryError> {
        let attributes = self.attributes;
        if !self.registry.catalog.features().has(Feature::PodCertificateRequest) {
            return self.refuse("PodCertificateRequest feature gate is disabled");
        }
        if attributes.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", attributes.operation.as_str()));
        }
        if let Some(subresource) = attributes.subresource {
            return self.refuse(format!("unexpected subresource {subresource}"));
        }
        let said = |name: &str| text_at(self.object, &["spec", name]);
        let (namespace, node) = (attributes.namespace.unwrap_or_default(), self.node);
        if said("nodeName") != node {
            let why = format!(
                "PodCertificateRequest.Spec.NodeName={:?}, which is not the requesting node {node:?}",
                said("nodeName")
            );
            return self.refuse(why);
        }
        // What is not as it is said may only be new. The client may try again, so it is not refused for good.
        let lookup = |plural, namespace, name: &str, shown: &str| {
            self.found(plural, namespace, name).map_err(|error| {
                let kind = if plural == "serviceaccounts" { "service account" } else { plural.trim_end_matches('s') };
                let why = format!("while retrieving {kind} {shown:?} named in the PodCertificateRequest: {error}");
                RegistryError::Undecided(why)
            })
        };
        let running = lookup("nodes", None, node, node)?;
        let place = format!("{namespace}/{}", said("podName"));
        let uid = |object: &Object| text_at(object, &["metadata", "uid"]).to_owned();
        if uid(&running) != said("nodeUID") {
            return Err(RegistryError::Undecided(format!(
                "PodCertificateRequest for pod {place:?} names node UID {:?}, inconsistent with the running node ({:?})",
                said("nodeUID"),
                uid(&running)
            )));
        }
        let pod = lookup("pods", Some(namespace), said("podName"), &place)?;
        if uid(&pod) != said("podUID") {
            return Err(RegistryError::Undecided(format!(
                "PodCertificateRequest for pod {place:?} contains pod UID ({:?}) which differs from running pod {:?}",
                said("podUID"),
                uid(&pod)
            )));
        }
        if text_at(&pod, &["spec", "nodeName"]) != node {
            return self
                .refuse(format!("pod {place:?} is not running on node {node:?} named in the PodCertificateRequest"));
        }
        if annotations(&pod).contains(MIRROR) {
            return self.refuse(format!("pod {place:?} is a mirror pod"));
        }
        let (named, runs_as) = (said("serviceAccountName"), text_at(&pod, &["spec", "serviceAccountName"]));
        if named != runs_as {
            return self.refuse(format!(
                "PodCertificateRequest for pod {place:?} contains serviceAccountName ({named:?}) that differs from \
                 running pod ({runs_as:?})"
            ));
        }
        let account = lookup("serviceaccounts", Some(namespace), named, &format!("{namespace}/{named}"))?;
        if uid(&account) != said("serviceAccountUID") {
            return Err(RegistryError::Undecided(format!(
                "PodCertificateRequest for pod {place:?} names service account UID {:?}, which differs from the running \
                 service account ({:?})",
                said("serviceAccountUID"),
                uid(&account)
            )));
        }
        Ok(())
    }
}

fn text_at<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_its_name_and_its_group() {
        let (nodes, others) = (vec![GROUP.to_owned()], vec!["system:authenticated".to_owned()]);
        for (name, groups, want) in [
            ("system:node:a", &nodes, Some("a")),
            ("system:node:", &nodes, Some("")),
            ("system:node:a", &others, None),
            ("a", &nodes, None),
        ] {
            assert_eq!(node_of(Requester { name, groups, ..Requester::default() }), want, "{name}");
        }
    }
}
