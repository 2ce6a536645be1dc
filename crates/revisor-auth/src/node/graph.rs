//! [`NodeGraph`]: what each node has to do with, by the pods that run there. Kept as counts, so that what a node may read
//! is one look-up, and at most one more through a volume.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use revisor_object::{Object, Value};

/// What a node may be related to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VertexKind {
    /// A pod.
    Pod,
    /// A secret.
    Secret,
    /// A config map.
    ConfigMap,
    /// A claim of a volume.
    PersistentVolumeClaim,
    /// A volume.
    PersistentVolume,
    /// A claim of devices.
    ResourceClaim,
    /// A service account.
    ServiceAccount,
    /// An attachment of a volume.
    VolumeAttachment,
    /// A slice of devices.
    ResourceSlice,
    /// A request for the certificate of a pod.
    PodCertificateRequest,
}

/// One object: its kind, namespace and name.
type Vertex = (VertexKind, Arc<str>, Arc<str>);

/// Which objects lead to which nodes.
#[derive(Debug, Default)]
pub struct NodeGraph {
    /// What the object of a key brought in, so that it can be taken out again.
    entered: HashMap<Vertex, Entered>,
    /// By how many objects each of these leads to a node.
    reached: HashMap<Vertex, HashMap<Arc<str>, usize>>,
    /// The volumes that a secret is for.
    volumes_of: HashMap<Vertex, HashSet<Arc<str>>>,
}

#[derive(Debug)]
enum Entered {
    /// These lead to the node.
    Leads { node: Arc<str>, from: Vec<Vertex> },
    /// A volume leads where its claim leads, and so do its secrets.
    Volume { claim: Vertex, secrets: Vec<Vertex> },
}

impl NodeGraph {
    /// Takes an object of this kind as it is now.
    pub fn put(&mut self, kind: VertexKind, namespace: &str, name: &str, object: &Object) {
        self.remove(kind, namespace, name);
        let vertex = vertex(kind, namespace, name);
        let entered = match kind {
            VertexKind::Pod => of_pod(&vertex, object),
            VertexKind::PersistentVolume => of_volume(object),
            VertexKind::VolumeAttachment | VertexKind::ResourceSlice | VertexKind::PodCertificateRequest => {
                let node = object.at(&["spec", "nodeName"]).and_then(Value::as_str).filter(|node| !node.is_empty());
                node.map(|node| Entered::Leads { node: node.into(), from: vec![vertex.clone()] })
            }
            _ => None,
        };
        let Some(entered) = entered else { return };
        match &entered {
            Entered::Leads { node, from } => {
                for from in from {
                    *self.reached.entry(from.clone()).or_default().entry(node.clone()).or_default() += 1;
                }
            }
            Entered::Volume { secrets, .. } => {
                for secret in secrets {
                    self.volumes_of.entry(secret.clone()).or_default().insert(vertex.2.clone());
                }
            }
        }
        self.entered.insert(vertex, entered);
    }

    /// Takes out what an object brought in.
    pub fn remove(&mut self, kind: VertexKind, namespace: &str, name: &str) {
        let vertex = vertex(kind, namespace, name);
        match self.entered.remove(&vertex) {
            None => {}
            Some(Entered::Leads { node, from }) => {
                for from in from {
                    let Some(nodes) = self.reached.get_mut(&from) else { continue };
                    if let Some(count) = nodes.get_mut(&node) {
                        *count -= 1;
                        if *count == 0 {
                            nodes.remove(&node);
                        }
                    }
                    if nodes.is_empty() {
                        self.reached.remove(&from);
                    }
                }
            }
            Some(Entered::Volume { secrets, .. }) => {
                for secret in secrets {
                    let Some(volumes) = self.volumes_of.get_mut(&secret) else { continue };
                    volumes.remove(&vertex.2);
                    if volumes.is_empty() {
                        self.volumes_of.remove(&secret);
                    }
                }
            }
        }
    }

    /// Takes out all objects of a kind.
    pub fn forget(&mut self, kind: VertexKind) {
        let known: Vec<Vertex> = self.entered.keys().filter(|vertex| vertex.0 == kind).cloned().collect();
        for (kind, namespace, name) in known {
            self.remove(kind, &namespace, &name);
        }
    }

    /// Whether an object leads to a node (`hasPathFrom`).
    pub(crate) fn has_path(&self, node: &str, kind: VertexKind, namespace: &str, name: &str) -> bool {
        let from = vertex(kind, namespace, name);
        if self.leads(&from, node) {
            return true;
        }
        let through = |volume: &Arc<str>| {
            let volume = (VertexKind::PersistentVolume, Arc::from(""), volume.clone());
            matches!(self.entered.get(&volume), Some(Entered::Volume { claim, .. }) if self.leads(claim, node))
        };
        match kind {
            VertexKind::PersistentVolume => through(&from.2),
            VertexKind::Secret => self.volumes_of.get(&from).is_some_and(|volumes| volumes.iter().any(through)),
            _ => false,
        }
    }

    fn leads(&self, from: &Vertex, node: &str) -> bool {
        self.reached.get(from).is_some_and(|nodes| nodes.contains_key(node))
    }
}

fn vertex(kind: VertexKind, namespace: &str, name: &str) -> Vertex {
    (kind, namespace.into(), name.into())
}

fn text<'a>(value: Option<&'a Object>, path: &[&str]) -> Option<&'a str> {
    value?.at(path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn objects<'a>(object: Option<&'a Object>, name: &str) -> impl Iterator<Item = &'a Object> {
    object.map(|object| object.array(name)).unwrap_or_default().iter().filter_map(Value::as_object)
}

/// What a pod leads to its node with (`AddPod`).
fn of_pod(pod: &Vertex, object: &Object) -> Option<Entered> {
    let (spec, status) = (object.object("spec"), object.object("status"));
    let node = text(spec, &["nodeName"])?;
    let mut from = vec![pod.clone()];
    let mirrors = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
    if mirrors.is_some_and(|annotations| annotations.contains("kubernetes.io/config.mirror")) {
        // Such a pod shows what a node runs already, so it gives the node no access to anything.
        return Some(Entered::Leads { node: node.into(), from });
    }
    let mut add = |kind: VertexKind, name: Option<&str>| {
        let Some(name) = name else { return };
        let new = (kind, pod.1.clone(), Arc::from(name));
        if !from.contains(&new) {
            from.push(new);
        }
    };
    add(VertexKind::ServiceAccount, text(spec, &["serviceAccountName"]));
    for secret in objects(spec, "imagePullSecrets") {
        add(VertexKind::Secret, text(Some(secret), &["name"]));
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in objects(spec, list) {
            for source in objects(Some(container), "envFrom") {
                add(VertexKind::Secret, text(Some(source), &["secretRef", "name"]));
                add(VertexKind::ConfigMap, text(Some(source), &["configMapRef", "name"]));
            }
            for variable in objects(Some(container), "env") {
                add(VertexKind::Secret, text(Some(variable), &["valueFrom", "secretKeyRef", "name"]));
                add(VertexKind::ConfigMap, text(Some(variable), &["valueFrom", "configMapKeyRef", "name"]));
            }
        }
    }
    for volume in objects(spec, "volumes") {
        let volume = Some(volume);
        for path in [
            &["azureFile", "secretName"][..],
            &["cephfs", "secretRef", "name"],
            &["cinder", "secretRef", "name"],
            &["flexVolume", "secretRef", "name"],
            &["rbd", "secretRef", "name"],
            &["secret", "secretName"],
            &["scaleIO", "secretRef", "name"],
            &["iscsi", "secretRef", "name"],
            &["storageos", "secretRef", "name"],
            &["csi", "nodePublishSecretRef", "name"],
        ] {
            add(VertexKind::Secret, text(volume, path));
        }
        add(VertexKind::ConfigMap, text(volume, &["configMap", "name"]));
        for source in objects(volume.and_then(|volume| volume.object("projected")), "sources") {
            add(VertexKind::Secret, text(Some(source), &["secret", "name"]));
            add(VertexKind::ConfigMap, text(Some(source), &["configMap", "name"]));
        }
        add(VertexKind::PersistentVolumeClaim, text(volume, &["persistentVolumeClaim", "claimName"]));
        if volume.is_some_and(|volume| volume.object("ephemeral").is_some()) {
            let claim = format!("{}-{}", pod.2, text(volume, &["name"]).unwrap_or_default());
            add(VertexKind::PersistentVolumeClaim, Some(&claim));
        }
    }
    for claim in objects(spec, "resourceClaims") {
        let name = text(Some(claim), &["name"]);
        let mut statuses = objects(status, "resourceClaimStatuses");
        let made = statuses.find(|status| text(Some(status), &["name"]) == name);
        let made = made.and_then(|status| text(Some(status), &["resourceClaimName"]));
        add(VertexKind::ResourceClaim, text(Some(claim), &["resourceClaimName"]).or(made));
    }
    add(VertexKind::ResourceClaim, text(status, &["extendedResourceClaimStatus", "resourceClaimName"]));
    Some(Entered::Leads { node: node.into(), from })
}

/// Where a volume leads, and which of its secrets nodes may see (`AddPV`, `VisitPVSecretNames`).
fn of_volume(object: &Object) -> Option<Entered> {
    let spec = object.object("spec");
    let (namespace, name) = (text(spec, &["claimRef", "namespace"])?, text(spec, &["claimRef", "name"])?);
    let mut secrets = Vec::new();
    let mut add = |namespace: &str, name: Option<&str>| {
        secrets.extend(name.map(|name| vertex(VertexKind::Secret, namespace, name)));
    };
    let of_azure = text(spec, &["azureFile", "secretNamespace"]).unwrap_or(namespace);
    add(of_azure, text(spec, &["azureFile", "secretName"]));
    for source in ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] {
        let own = text(spec, &[source, "secretRef", "namespace"]).unwrap_or(namespace);
        add(own, text(spec, &[source, "secretRef", "name"]));
    }
    for reference in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        let own = text(spec, &["csi", reference, "namespace"]).unwrap_or(namespace);
        add(own, text(spec, &["csi", reference, "name"]));
    }
    Some(Entered::Volume { claim: vertex(VertexKind::PersistentVolumeClaim, namespace, name), secrets })
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_yaml;

    use super::*;

    fn object(text: &str) -> Object {
        match parse_yaml(text.as_bytes()).expect("is YAML").value {
            Value::Object(object) => object,
            _ => panic!("{text}"),
        }
    }

    const POD: &str = "
metadata: {name: p, namespace: n}
spec:
  nodeName: one
  serviceAccountName: bot
  imagePullSecrets: [{name: pull}]
  containers:
  - {env: [{valueFrom: {secretKeyRef: {name: env-secret}}}], envFrom: [{configMapRef: {name: env-map}}]}
  volumes:
  - {name: v, ephemeral: {}}
  - {name: w, persistentVolumeClaim: {claimName: claim}}
  - {name: x, projected: {sources: [{configMap: {name: projected}}]}}
  resourceClaims: [{name: c, resourceClaimTemplateName: t}]
status: {resourceClaimStatuses: [{name: c, resourceClaimName: made}]}
";

    #[test]
    fn a_node_is_related_to_what_its_pods_need_and_to_nothing_else() {
        let mut graph = NodeGraph::default();
        graph.put(VertexKind::Pod, "n", "p", &object(POD));
        let volume = "spec: {claimRef: {namespace: 'n', name: claim}, csi: {nodeStageSecretRef: {name: stage, namespace: s}, \
                      controllerPublishSecretRef: {name: hidden, namespace: s}}}";
        graph.put(VertexKind::PersistentVolume, "", "pv", &object(volume));
        let cases = [
            (VertexKind::Pod, "n", "p", true),
            (VertexKind::ServiceAccount, "n", "bot", true),
            (VertexKind::ServiceAccount, "m", "bot", false),
            (VertexKind::Secret, "n", "pull", true),
            (VertexKind::Secret, "n", "env-secret", true),
            (VertexKind::Secret, "n", "other", false),
            (VertexKind::ConfigMap, "n", "env-map", true),
            (VertexKind::ConfigMap, "n", "projected", true),
            (VertexKind::PersistentVolumeClaim, "n", "p-v", true),
            (VertexKind::PersistentVolumeClaim, "n", "claim", true),
            (VertexKind::PersistentVolume, "", "pv", true),
            (VertexKind::Secret, "s", "stage", true),
            (VertexKind::Secret, "s", "hidden", false),
            (VertexKind::ResourceClaim, "n", "made", true),
        ];
        for (kind, namespace, name, want) in cases {
            assert_eq!(graph.has_path("one", kind, namespace, name), want, "{kind:?} {namespace}/{name}");
            assert!(!graph.has_path("two", kind, namespace, name), "{kind:?} {namespace}/{name} from another node");
        }
        graph.remove(VertexKind::Pod, "n", "p");
        for (kind, namespace, name, _) in cases {
            assert!(!graph.has_path("one", kind, namespace, name), "{kind:?} {namespace}/{name} after the pod");
        }
        assert!(graph.reached.is_empty());
        let mirror = POD.replace("namespace: n}", "namespace: n, annotations: {kubernetes.io/config.mirror: x}}");
        graph.put(VertexKind::Pod, "n", "p", &object(&mirror));
        assert!(graph.has_path("one", VertexKind::Pod, "n", "p"));
        assert!(!graph.has_path("one", VertexKind::Secret, "n", "pull"));
    }
}
