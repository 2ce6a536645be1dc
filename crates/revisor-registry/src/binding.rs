//! Binding: a pod is put on a node, once.

use revisor_catalog::{Feature, Features};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::overwrite::{require, set_condition};
use crate::write::{match_namespace, unlike_stored};
use crate::{
    Decoded, GroupVersionKind, Operation, Place, Preconditions, Registry, RegistryError, UnstoredWrite, WriteOptions,
};

impl Registry {
    /// Puts a pod on a node. The place is that of the pod, or of the collection of bindings, where the binding itself
    /// names the pod.
    pub async fn bind(
        &self,
        place: Place<'_>,
        binding: Decoded,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(pods) = self.known("", "v1", "pods") else { return Err(RegistryError::Unreadable) };
        let Place { namespace, name, .. } = place;
        options.keep_sent(&binding.warnings);
        let mut binding = binding.object;
        let metadata = binding.object_mut("metadata");
        match_namespace(pods, metadata, namespace)?;
        // Only who binds at the pod can say which one is meant (upstream: `SubresourceObjectMetaPreserver`).
        if name.is_none() {
            metadata.remove("uid");
        }
        let name_in_body = binding.at(&["metadata", "name"]).and_then(Value::as_str).map(str::to_owned);
        let write = UnstoredWrite {
            place: Place { name: name.or(name_in_body.as_deref()), ..place },
            own_kind: Some(GroupVersionKind { group: "", version: "v1", kind: "Binding" }),
            operation: Operation::Create,
            options: WriteOptions { subresource: (place.resource.plural == "pods").then_some("binding"), ..options },
        };
        if let Some(bindings) = self.catalog.resource("", "v1", "bindings") {
            self.record_sender(bindings, &mut binding, write.options).await;
        }
        self.admit_unstored(&write, &mut binding).await?;
        let metadata = binding.object_mut("metadata");
        match_namespace(pods, metadata, namespace)?;
        let named = metadata.str("name").unwrap_or_default().to_owned();
        let preconditions = preconditions(metadata);
        match name {
            Some(name) if name != named => {
                let message = "name in URL does not match name in Binding object";
                return Err(RegistryError::BadRequest(message.to_owned()));
            }
            None if named.is_empty() => return Err(RegistryError::BadRequest("Name parameter required.".to_owned())),
            _ => {}
        }
        let empty = Object::new();
        let target = binding.object("target").unwrap_or(&empty).clone();
        let errors = validate(&target);
        if !errors.is_empty() {
            // DIFFERENCE: the original answers 500.
            let bindings = self.catalog.resource("", "v1", "bindings").unwrap_or(pods);
            return Err(RegistryError::Invalid { resource: bindings.clone(), name: named, errors });
        }
        let node = target.str("name").unwrap_or_default();
        let features = self.catalog.features();
        self.validate_unstored(&write, &binding).await?;
        let metadata = binding.object("metadata").unwrap_or(&empty);
        let now = self.environment.timestamp();
        self.overwrite(pods, namespace, &named, options.dry_run, |entry, pod| {
            require(pods, entry, pod, &preconditions).map_err(|error| match error {
                RegistryError::Conflict { why, .. } => {
                    let pod = Place { resource: pods, namespace, name: Some(&named) };
                    RegistryError::conflict(pods, &named, unlike_stored(pod, options.dry_run, &why))
                }
                other => other,
            })?;
            assign(pod, node, metadata, features, &now).map_err(|why| RegistryError::SubresourceConflict {
                resource: pods.clone(),
                subresource: "binding",
                name: named.clone(),
                why,
            })
        })
        .await?;
        Ok(())
    }
}

fn preconditions(metadata: &Object) -> Preconditions {
    let given = |name| metadata.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
    Preconditions { uid: given("uid"), resource_version: given("resourceVersion") }
}

fn validate(target: &Object) -> FieldErrors {
    let path = FieldPath::root("target");
    let mut errors = FieldErrors::new();
    let kind = target.str("kind").unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if target.str("name").unwrap_or_default().is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    errors
}

fn assign(pod: &mut Object, node: &str, binding: &Object, features: Features, now: &str) -> Result<(), String> {
    let metadata = pod.object_mut("metadata");
    let name = metadata.str("name").unwrap_or_default().to_owned();
    if metadata.contains("deletionTimestamp") {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let lists: &[&str] =
        if features.has(Feature::PodTopologyLabelsAdmission) { &["annotations", "labels"] } else { &["annotations"] };
    for list in lists {
        for (key, value) in binding.object(list).into_iter().flat_map(Object::iter) {
            metadata.object_mut(list).insert(key, value.clone());
        }
    }
    let spec = pod.object_mut("spec");
    if let Some(taken) = spec.str("nodeName").filter(|taken| !taken.is_empty()) {
        return Err(format!("pod {name} is already assigned to node {taken:?}"));
    }
    if !spec.array("schedulingGates").is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    spec.insert("nodeName", node);
    if features.has(Feature::ClearingNominatedNodeNameAfterBinding)
        && let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut)
    {
        // The node was chosen, so the hint where it might go is stale.
        status.remove("nominatedNodeName");
    }
    set_condition(pod, [("type", "PodScheduled"), ("status", "True"), ("reason", ""), ("message", "")], now);
    Ok(())
}
