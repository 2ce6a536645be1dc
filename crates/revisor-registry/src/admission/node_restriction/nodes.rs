//! What a kubelet may change about its node and about claims: no label or taint that would draw pods to it.

use std::collections::BTreeSet;

use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::Request;
use crate::RegistryError;
use crate::admission::Operation;
use crate::admission::pod_fields::labels;

/// Labels of Kubernetes that a kubelet sets.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

impl Request<'_> {
    pub(super) fn admit_node(&self) -> Result<(), RegistryError> {
        let (attributes, node, object) = (self.attributes, self.node, self.object);
        let requested = attributes.name;
        if requested != node {
            return self.refuse(format!("node {node:?} is not allowed to modify node {requested:?}"));
        }
        fn part<'o>(object: &'o Object, path: &[&str]) -> Option<&'o Value> {
            let is_something = |value: &&Value| value.as_array().is_none_or(|list| !list.is_empty());
            object.at(path).filter(is_something)
        }
        match (attributes.operation, attributes.old) {
            (Operation::Create, _) => {
                if object.at(&["spec", "configSource"]).is_some() {
                    let why = format!("node {node:?} is not allowed to create pods with a non-nil configSource");
                    return self.refuse(why);
                }
                let forbidden = forbidden_labels(&changed_labels(object, None));
                if !forbidden.is_empty() {
                    return self.refuse(format!(
                        "node {node:?} is not allowed to set the following labels: {}",
                        forbidden.join(", ")
                    ));
                }
                Ok(())
            }
            (Operation::Update, Some(old)) => {
                let source = |object| part(object, &["spec", "configSource"]);
                if source(object).is_some() && source(object) != source(old) {
                    return self.refuse(format!(
                        "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                    ));
                }
                if part(object, &["spec", "taints"]) != part(old, &["spec", "taints"]) {
                    return self.refuse(format!("node {node:?} is not allowed to modify taints"));
                }
                let owners = &["metadata", "ownerReferences"];
                if part(object, owners) != part(old, owners) {
                    return self.refuse(format!("node {node:?} is not allowed to modify ownerReferences"));
                }
                let forbidden = forbidden_labels(&changed_labels(object, Some(old)));
                if !forbidden.is_empty() {
                    return self.refuse(format!("is not allowed to modify labels: {}", forbidden.join(", ")));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn admit_claim_status(&self) -> Result<(), RegistryError> {
        let (attributes, node) = (self.attributes, self.node);
        let Some(old) = attributes.old.filter(|_| attributes.operation == Operation::Update) else {
            return self.unexpected_operation();
        };
        let can_recover = self.registry.catalog.features().has(Feature::RecoverVolumeExpansionFailure);
        let bare = |claim: &Object| {
            let mut claim = claim.clone();
            // What is stored may lack the type, which the original's objects never have.
            claim.remove("apiVersion");
            claim.remove("kind");
            let metadata = claim.object_mut("metadata");
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
            let status = claim.object_mut("status");
            status.remove("capacity");
            status.remove("conditions");
            if can_recover {
                status.remove("allocatedResourceStatuses");
                status.remove("allocatedResources");
            }
            claim
        };
        let (old, new) = (bare(old), bare(self.object));
        if old == new {
            return Ok(());
        }
        // DIFFERENCE: the original ends with both objects side by side; which members differ is what matters.
        let names: BTreeSet<&str> = old.iter().chain(new.iter()).map(|(name, _)| name).collect();
        let differing: Vec<&str> = names.into_iter().filter(|name| old.get(name) != new.get(name)).collect();
        self.refuse(format!(
            "node {node:?} is not allowed to update fields other than status.quantity and status.conditions: {}",
            differing.join(", ")
        ))
    }
}

/// The labels that are not the same in both objects.
fn changed_labels<'a>(new: &'a Object, old: Option<&'a Object>) -> BTreeSet<&'a str> {
    let empty = const { &Object::new() };
    let (new, old) = (labels(new), old.map_or(empty, labels));
    let names = new.iter().chain(old.iter()).map(|(name, _)| name);
    names.filter(|name| new.get(name) != old.get(name)).collect()
}

/// Those of them that a kubelet may not touch (upstream: `getForbiddenLabels`).
fn forbidden_labels<'a>(changed: &BTreeSet<&'a str>) -> Vec<&'a str> {
    changed.iter().copied().filter(|label| is_forbidden(label)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |(namespace, _)| namespace);
    let is_in =
        |domain: &str| namespace.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    let is_kubelets = KUBELET_LABELS.contains(&label) || is_in("kubelet.kubernetes.io") || is_in("node.kubernetes.io");
    is_in("node-restriction.kubernetes.io") || (is_kubernetes && !is_kubelets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_sets_its_own_labels_only() {
        for (label, want) in [
            ("team", false),
            ("example.com/rack", false),
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("kubelet.kubernetes.io/x", false),
            ("my.kubelet.kubernetes.io/x", false),
            ("node.kubernetes.io/x", false),
            ("foo.node.kubernetes.io/x", false),
            ("kubernetes.io/x", true),
            ("foo.k8s.io/x", true),
            ("node-restriction.kubernetes.io/x", true),
            ("foo.node-restriction.kubernetes.io/x", true),
            ("notkubernetes.io/x", false),
        ] {
            assert_eq!(is_forbidden(label), want, "{label}");
        }
    }
}
