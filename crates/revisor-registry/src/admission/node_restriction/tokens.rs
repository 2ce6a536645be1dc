//! The tokens that a kubelet may ask for: of pods on its node, and for those whom these pods name.

use revisor_auth::ResourceAttributes;
use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::{Request, text_at};
use crate::RegistryError;
use crate::admission::pod_fields::{objects, spec, text};
use crate::escalation::user;

/// The drivers that took over from volumes that Kubernetes once had itself.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

impl Request<'_> {
    pub(super) fn admit_token(&self) -> Result<(), RegistryError> {
        let bound = self.object.at(&["spec", "boundObjectRef"]).and_then(Value::as_object);
        let is_pod = |bound: &&Object| {
            text(bound, "apiVersion") == "v1" && text(bound, "kind") == "Pod" && !text(bound, "name").is_empty()
        };
        let Some(bound) = bound.filter(is_pod) else {
            return self.refuse("node requested token not bound to a pod");
        };
        let named = text(bound, "uid");
        if named.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.found("pods", self.attributes.namespace, text(bound, "name"))?;
        if named != text_at(&pod, &["metadata", "uid"]) {
            return self.refuse(format!(
                "the UID in the bound object reference ({named}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            ));
        }
        if text_at(&pod, &["spec", "nodeName"]) != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        if self.registry.catalog.features().has(Feature::ServiceAccountNodeAudienceRestriction) {
            return self.admit_audience(&pod);
        }
        Ok(())
    }

    /// A token is for whom the pod has it mounted, or for whom the node was given the right to ask.
    fn admit_audience(&self, pod: &Object) -> Result<(), RegistryError> {
        let audiences = self.object.at(&["spec", "audiences"]).and_then(Value::as_array).unwrap_or_default();
        let audience = match audiences {
            [] => "",
            [only] => only.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        match self.names_audience(pod, audience) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(errors) => {
                let errors = match errors.as_slice() {
                    [only] => only.clone(),
                    several => format!("[{}]", several.join(", ")),
                };
                return self.refuse(format!("error validating audience {audience:?}: {errors}"));
            }
        }
        let attributes = self.attributes;
        let asked = ResourceAttributes {
            group: "",
            version: "v1",
            resource: audience,
            subresource: None,
            namespace: attributes.namespace,
            name: Some(attributes.name),
            selectors: None,
        };
        let user = user(attributes.requester);
        let verb = "request-serviceaccounts-token-audience";
        if user.is_some_and(|user| self.registry.allows(&user, verb, asked)) {
            return Ok(());
        }
        self.refuse(format!(
            "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this \
             audience",
            attributes.requester.name
        ))
    }

    /// Whether a pod mounts a token for an audience, or a volume whose driver wants one (upstream:
    /// `podReferencesAudience`).
    fn names_audience(&self, pod: &Object, audience: &str) -> Result<bool, Vec<String>> {
        let mut errors = Vec::new();
        for volume in objects(spec(pod), "volumes") {
            let mut sources = volume.object("projected").into_iter().flat_map(|source| objects(source, "sources"));
            let is_mounted = |source: &Object| {
                source.object("serviceAccountToken").is_some_and(|token| text(token, "audience") == audience)
            };
            if sources.any(is_mounted) {
                return Ok(true);
            }
            let driver = match self.driver_of(pod, volume) {
                Ok(driver) => driver,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let Some(driver) = driver else { continue };
            match self.registry.stored("storage.k8s.io", "v1", "csidrivers", None, &driver) {
                Some(found) => {
                    let requests = found.object("spec").into_iter().flat_map(|spec| objects(spec, "tokenRequests"));
                    if requests.into_iter().any(|request| text(request, "audience") == audience) {
                        return Ok(true);
                    }
                }
                None => errors.push(format!("csidriver.storage.k8s.io {driver:?} not found")),
            }
        }
        if errors.is_empty() { Ok(false) } else { Err(errors) }
    }

    /// The driver behind a volume of a pod, if there is one.
    fn driver_of(&self, pod: &Object, volume: &Object) -> Result<Option<String>, String> {
        let claim = if volume.object("ephemeral").is_some_and(|source| source.contains("volumeClaimTemplate")) {
            Some(format!("{}-{}", text_at(pod, &["metadata", "name"]), text(volume, "name")))
        } else {
            volume.object("persistentVolumeClaim").map(|source| text(source, "claimName").to_owned())
        };
        if let Some(claim) = claim {
            let namespace = Some(text_at(pod, &["metadata", "namespace"]));
            let stored = |plural, namespace, name: &str, singular: &str| {
                let found = self.registry.stored("", "v1", plural, namespace, name);
                found.ok_or_else(|| format!("{singular} {name:?} not found"))
            };
            let claim = stored("persistentvolumeclaims", namespace, &claim, "persistentvolumeclaim")?;
            let volume = text_at(&claim, &["spec", "volumeName"]);
            let volume = stored("persistentvolumes", None, volume, "persistentvolume")?;
            return Ok(volume.object("spec").and_then(driver));
        }
        Ok(driver(volume))
    }
}

/// The driver of a volume, by its own word or because it took over.
fn driver(volume: &Object) -> Option<String> {
    let named = volume.object("csi").map(|source| text(source, "driver").to_owned());
    let migrated =
        || MIGRATED.iter().find(|(source, _)| volume.contains(source)).map(|(_, driver)| (*driver).to_owned());
    named.or_else(migrated).filter(|driver| !driver.is_empty())
}
