//! What a kubelet may do with pods: show those that it runs by itself, and report on, evict and delete those that run
//! on its node.

use revisor_object::{Object, ResourceRef, Status, Value};

use super::{Request, text_at};
use crate::RegistryError;
use crate::admission::Operation;
use crate::admission::pod_fields::{MIRROR, annotations, labels, objects, spec, text};
use crate::admission::service_account::references_secrets;

impl Request<'_> {
    pub(super) fn admit_pod(&self) -> Result<(), RegistryError> {
        let (attributes, node) = (self.attributes, self.node);
        match attributes.operation {
            Operation::Create => self.admit_mirror_pod(),
            Operation::Delete => {
                let pod = self.listed_pod(attributes.name)?;
                if text_at(&pod, &["spec", "nodeName"]) != node {
                    let why = format!("node {node:?} can only delete pods with spec.nodeName set to itself");
                    return self.refuse(why);
                }
                Ok(())
            }
            other => self.refuse(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                other.as_str()
            )),
        }
    }

    fn admit_mirror_pod(&self) -> Result<(), RegistryError> {
        let (node, pod) = (self.node, self.object);
        if !annotations(pod).contains(MIRROR) {
            return self
                .refuse(format!("pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"));
        }
        if text_at(pod, &["spec", "nodeName"]) != node {
            return self.refuse(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
        }
        let owners = pod.object("metadata").map(|metadata| metadata.array("ownerReferences")).unwrap_or_default();
        let owner = match owners {
            [Value::Object(owner)] => owner,
            [_, _, ..] => {
                let why = format!("node {node:?} can only create pods with a single owner reference set to itself");
                return self.refuse(why);
            }
            _ => {
                let why = format!("node {node:?} can only create pods with an owner reference set to itself");
                return self.refuse(why);
            }
        };
        if text(owner, "apiVersion") != "v1" || text(owner, "kind") != "Node" || text(owner, "name") != node {
            return self.refuse(format!("node {node:?} can only create pods with an owner reference set to itself"));
        }
        let is_set = |name| owner.get(name).and_then(Value::as_bool) == Some(true);
        if !is_set("controller") {
            return self
                .refuse(format!("node {node:?} can only create pods with a controller owner reference set to itself"));
        }
        if is_set("blockOwnerDeletion") {
            return self.refuse(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
        }
        let running = self.found("nodes", None, node)?;
        let (named, uid) = (text(owner, "uid"), text_at(&running, &["metadata", "uid"]));
        if named != uid {
            return self.refuse(format!("node {node} UID mismatch: expected {named} got {uid}"));
        }
        match referenced(spec(pod)) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => self.refuse(format!("node {node:?} can not create pods that reference {what}")),
            Err(error) => self.refuse(format!("error checking mirror pod for API references: {error}")),
        }
    }

    pub(super) fn admit_pod_status(&self) -> Result<(), RegistryError> {
        let (attributes, node) = (self.attributes, self.node);
        let Some(old) = attributes.old.filter(|_| attributes.operation == Operation::Update) else {
            return self.unexpected_operation();
        };
        if text_at(old, &["spec", "nodeName"]) != node {
            return self
                .refuse(format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself"));
        }
        if labels(old) != labels(self.object) {
            return self.refuse(format!("node {node:?} cannot update labels through pod status"));
        }
        fn claims(pod: &Object) -> Vec<(&str, Option<&str>)> {
            let statuses = pod.at(&["status", "resourceClaimStatuses"]).and_then(Value::as_array).unwrap_or_default();
            let statuses = statuses.iter().filter_map(Value::as_object);
            statuses.map(|status| (text(status, "name"), status.str("resourceClaimName"))).collect()
        }
        if claims(old) != claims(self.object) {
            return self.refuse(format!("node {node:?} cannot update resource claim statues"));
        }
        let extended = &["status", "extendedResourceClaimStatus"];
        if old.at(extended) != self.object.at(extended) {
            return self.refuse(format!("node {node:?} cannot update extended resource claim status"));
        }
        Ok(())
    }

    /// A pod as the original's lister finds it, which calls the resource by its singular.
    fn listed_pod(&self, name: &str) -> Result<Object, RegistryError> {
        self.registry.stored("", "v1", "pods", self.attributes.namespace, name).ok_or_else(|| {
            let pods = ResourceRef { group: "", resource: "pod" };
            RegistryError::Denied(Box::new(Status::not_found(pods, name)))
        })
    }

    pub(super) fn admit_eviction(&self) -> Result<(), RegistryError> {
        let (attributes, node) = (self.attributes, self.node);
        if attributes.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", attributes.operation.as_str()));
        }
        let named = text_at(self.object, &["metadata", "name"]);
        let name = if attributes.name.is_empty() { named } else { attributes.name };
        if name.is_empty() {
            return self.refuse("could not determine pod from request data");
        }
        let pod = self.listed_pod(name)?;
        if text_at(&pod, &["spec", "nodeName"]) != node {
            return self.refuse(format!("node {node} can only evict pods with spec.nodeName set to itself"));
        }
        Ok(())
    }
}

/// Volumes that need nothing of the server.
const FREE_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volumes that need other objects, and how those are called.
const BOUND_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

const PROJECTED_SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Which other objects a pod needs (upstream: `HasAPIObjectReference`).
fn referenced(spec: &Object) -> Result<Option<&'static str>, String> {
    if !text(spec, "serviceAccountName").is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if references_secrets(spec) {
        return Ok(Some("secrets"));
    }
    if references_config_maps(spec) {
        return Ok(Some("configmaps"));
    }
    if !spec.array("resourceClaims").is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in objects(spec, "volumes") {
        let has = |name: &str| volume.contains(name);
        if FREE_VOLUMES.iter().any(|name| has(name)) {
            continue;
        }
        if let Some((_, what)) = BOUND_VOLUMES.iter().find(|(name, _)| has(name)) {
            return Ok(Some(what));
        }
        let Some(projected) = volume.object("projected") else {
            return Err(format!("unknown volume type for volume  {:?}", text(volume, "name")));
        };
        for source in objects(projected, "sources") {
            if let Some((_, what)) = PROJECTED_SOURCES.iter().find(|(name, _)| source.contains(name)) {
                return Ok(Some(what));
            }
            if !source.contains("downwardAPI") {
                return Err(format!("unknown source for projected volume {:?}", text(volume, "name")));
            }
        }
    }
    Ok(None)
}

fn references_config_maps(spec: &Object) -> bool {
    let in_container = |container: &Object| {
        objects(container, "envFrom").any(|source| source.contains("configMapRef"))
            || objects(container, "env")
                .any(|variable| variable.object("valueFrom").is_some_and(|source| source.contains("configMapKeyRef")))
    };
    let in_volume = |volume: &Object| {
        volume.contains("configMap")
            || volume
                .object("projected")
                .is_some_and(|projected| objects(projected, "sources").any(|source| source.contains("configMap")))
    };
    ["initContainers", "containers", "ephemeralContainers"].iter().any(|list| objects(spec, list).any(in_container))
        || objects(spec, "volumes").any(in_volume)
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn a_mirror_pod_needs_nothing_of_the_server() {
        for (text, want) in [
            (r#"{"volumes":[{"name":"a","hostPath":{}},{"name":"b","emptyDir":{}}]}"#, Ok(None)),
            (r#"{"serviceAccountName":"s"}"#, Ok(Some("serviceaccounts"))),
            (r#"{"containers":[{"envFrom":[{"configMapRef":{"name":"c"}}]}]}"#, Ok(Some("configmaps"))),
            (r#"{"resourceClaims":[{"name":"r"}]}"#, Ok(Some("resourceclaims"))),
            (r#"{"volumes":[{"name":"a","csi":{"driver":"d"}}]}"#, Ok(Some("csidrivers (via CSI volumes)"))),
            (
                r#"{"volumes":[{"name":"a","projected":{"sources":[{"downwardAPI":{}},{"serviceAccountToken":{}}]}}]}"#,
                Ok(Some("serviceaccounts (via projected volumes)")),
            ),
            (r#"{"volumes":[{"name":"a","new":{}}]}"#, Err("unknown volume type for volume  \"a\"".to_owned())),
        ] {
            let Value::Object(spec) = parse_json(text.as_bytes()).expect("is JSON").value else { panic!("{text}") };
            assert_eq!(referenced(&spec), want, "{text}");
        }
    }
}
