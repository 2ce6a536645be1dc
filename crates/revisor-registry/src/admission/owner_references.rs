//! OwnerReferencesPermissionEnforcement: who lets an object be deleted with another must be able to delete it, and who
//! holds back the deletion of another must be able to set its finalizers.

use revisor_auth::{Attributes as Question, Decision, Identity, NotAllowed, ResourceAttributes};
use revisor_object::{Object, Value};

use super::{Admission, Attributes, Operation};
use crate::escalation::user;
use crate::{Registry, RegistryError};

pub(super) struct OwnerReferencesPermissionEnforcement;

impl Admission for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        // A status does not change owners; old kubelets garble them there.
        if attributes.is_about_part("", "pods", "status") || owners(object) == attributes.old.map_or(&[][..], owners) {
            return Ok(());
        }
        let Some(user) = user(attributes.requester) else { return Ok(()) };
        if attributes.operation != Operation::Create {
            let shown = attributes.shown;
            let itself = ResourceAttributes {
                group: &shown.group,
                version: &shown.version,
                resource: &shown.plural,
                subresource: attributes.subresource,
                namespace: attributes.namespace,
                name: Some(attributes.name),
                selectors: None,
            };
            if let Some(refusal) = refused(registry, &user, "delete", itself) {
                let why = "cannot set an ownerRef on a resource you can't delete";
                return Err(attributes.forbidden(format!("{why}: {}", in_go(&refusal))));
            }
        }
        let blocking = newly_blocking(object, attributes.old);
        let anything = ResourceAttributes {
            group: "*",
            version: "*",
            resource: "*",
            subresource: Some("finalizers"),
            namespace: None,
            name: Some("*"),
            selectors: None,
        };
        if blocking.is_empty() || refused(registry, &user, "update", anything).is_none() {
            return Ok(());
        }
        blocking.into_iter().try_for_each(|owner| may_hold_back(registry, attributes, &user, owner))
    }
}

fn owners(object: &Object) -> &[Value] {
    object.object("metadata").map(|metadata| metadata.array("ownerReferences")).unwrap_or_default()
}

fn is_blocking(owner: &Object) -> bool {
    owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

/// The references that hold back the deletion of an owner and did not before (upstream: `newBlockingOwnerDeletionRefs`).
fn newly_blocking<'a>(object: &'a Object, old: Option<&Object>) -> Vec<&'a Object> {
    let held = |owner: &Object| {
        let before = old.map_or(&[][..], owners).iter().filter_map(Value::as_object);
        let last = before.rev().find(|known| known.str("uid") == owner.str("uid"));
        last.is_some_and(is_blocking)
    };
    let blocking = owners(object).iter().filter_map(Value::as_object).filter(|owner| is_blocking(owner));
    blocking.filter(|owner| !held(owner)).collect()
}

fn may_hold_back(
    registry: &Registry,
    attributes: &Attributes<'_>,
    user: &Identity,
    owner: &Object,
) -> Result<(), RegistryError> {
    let text = |name| owner.str(name).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let catalog = registry.catalog();
    let found: Vec<_> = catalog
        .resources()
        .filter(|known| known.group == group && known.version == version && known.kind == kind)
        .collect();
    if found.is_empty() {
        let why = format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} \
             Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
        );
        return Err(attributes.forbidden(why));
    }
    for resource in found {
        let finalizers = ResourceAttributes {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: Some("finalizers"),
            namespace: attributes.namespace.filter(|_| resource.namespaced),
            name: Some(text("name")),
            selectors: None,
        };
        if let Some(refusal) = refused(registry, user, "update", finalizers) {
            let why =
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on";
            return Err(attributes.forbidden(format!("{why}: {}", in_go(&refusal))));
        }
    }
    Ok(())
}

/// What is said against a right, and what was wrong.
fn in_go(refusal: &NotAllowed) -> String {
    format!("{}, {}", refusal.reason, refusal.error.as_deref().unwrap_or("<nil>"))
}

fn refused(registry: &Registry, user: &Identity, verb: &str, resource: ResourceAttributes<'_>) -> Option<NotAllowed> {
    let asked = Question { user, verb, path: "", resource: Some(resource) };
    match registry.authorizer.authorize(&asked) {
        Decision::Allow => None,
        Decision::Forbidden(refusal) => Some(refusal),
    }
}
