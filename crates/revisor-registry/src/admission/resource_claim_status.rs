//! Who may write which part of the status of a claim of devices (`DRAResourceClaimGranularStatusAuthorization`): the
//! scheduler binds it, drivers tell of their devices. Both are rights to parts of claims that nothing is served at. The
//! rules are those of the original (`pkg/registry/resource/utils.go`).

use std::collections::{BTreeMap, BTreeSet};

use revisor_auth::{Attributes as Question, Decision, Forbidden, Identity, ResourceAttributes};
use revisor_catalog::Feature;
use revisor_object::{FieldError, FieldErrors, Object, Value, names};

use super::{Admission, Attributes, Operation, Waiting};
use crate::escalation::user;
use crate::{Registry, RegistryError};

/// The part of a claim that who binds it needs, and the one that drivers need, by their names.
const BINDING: &str = "binding";
const DRIVER: &str = "driver";
/// What stands before the verb of one who runs on the node of the claim, and of one who may run anywhere.
const ASSOCIATED_NODE: &str = "associated-node:";
const ARBITRARY_NODE: &str = "arbitrary-node:";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

pub(super) struct ResourceClaimStatus;

impl Admission for ResourceClaimStatus {
    fn name(&self) -> &'static str {
        "ResourceClaimStatus"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a Object,
    ) -> Option<Waiting<'a>> {
        if !attributes.is_about_part("resource.k8s.io", "resourceclaims", "status")
            || !registry.built_in().features().has(Feature::DRAResourceClaimGranularStatusAuthorization)
        {
            return None;
        }
        let user = user(attributes.requester).filter(|user| !user.is_master())?;
        Some(Box::pin(async move {
            let empty = Object::new();
            let status = Statuses {
                new: object.object("status").unwrap_or(&empty),
                old: attributes.old.and_then(|old| old.object("status")).unwrap_or(&empty),
            };
            let asking = Asking { registry, attributes, user };
            let mut errors = FieldErrors::default();
            errors.extend(asking.binding(status).await);
            let has_devices = registry.built_in().features().has(Feature::DRAResourceClaimDeviceStatus);
            // Without an allocation all that is said of devices goes.
            if has_devices && allocation(status.new).is_some() {
                errors.extend(asking.devices(status).await);
            }
            if errors.is_empty() {
                return Ok(());
            }
            Err(RegistryError::Invalid {
                resource: attributes.resource.clone(),
                name: attributes.name.to_owned(),
                errors,
            })
        }))
    }
}

/// The status as it would be and as it is.
#[derive(Clone, Copy)]
struct Statuses<'a> {
    new: &'a Object,
    old: &'a Object,
}

/// One who writes the status of a claim.
struct Asking<'a> {
    registry: &'a Registry,
    attributes: &'a Attributes<'a>,
    user: Identity,
}

impl Asking<'_> {
    /// Who binds claims needs the right to do so in the whole cluster (`AuthorizedForBinding`).
    async fn binding(&self, status: Statuses<'_>) -> Option<FieldError> {
        let Statuses { new, old } = status;
        if allocation(new) == allocation(old) && new.array("reservedFor") == old.array("reservedFor") {
            return None;
        }
        let verb = self.attributes.verb();
        let refusal = self.refusal(verb, BINDING, None, None).await?;
        let detail = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
             verb=\"{verb}\" permission: {refusal}"
        );
        Some(FieldError::forbidden("status.allocation", detail))
    }

    /// Who tells of the devices of a driver needs the right to speak for it (`AuthorizedForDeviceStatus`).
    async fn devices(&self, status: Statuses<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let drivers = changed_drivers(status);
        if drivers.is_empty() {
            return errors;
        }
        let verb = self.attributes.verb();
        let is_near = allocated_node(status.new).is_some_and(|node| runs_on(&self.user, node));
        let prefixes = if is_near { &[ASSOCIATED_NODE, ARBITRARY_NODE][..] } else { &[ARBITRARY_NODE] };
        let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}{verb}")).collect();
        for driver in drivers {
            let mut first = None;
            let mut is_allowed = false;
            for verb in &verbs {
                match self.refusal(verb, DRIVER, self.attributes.namespace, Some(driver)).await {
                    None => {
                        is_allowed = true;
                        break;
                    }
                    Some(refusal) => first = first.or(Some(refusal)),
                }
            }
            if let Some(refusal) = first.filter(|_| !is_allowed) {
                let detail = format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: \
                     {refusal}",
                    verbs.join(" ")
                );
                errors.push(FieldError::forbidden("status.devices", detail));
            }
        }
        errors
    }

    /// What is said against a right to a part of claims; `None` if the user has it.
    async fn refusal(&self, verb: &str, part: &str, namespace: Option<&str>, name: Option<&str>) -> Option<String> {
        let shown = self.attributes.shown;
        let resource = ResourceAttributes {
            group: &shown.group,
            version: &shown.version,
            resource: &shown.plural,
            subresource: Some(part),
            namespace,
            name,
            selectors: None,
        };
        let asked = Question { user: &self.user, verb, path: "", resource: Some(resource) };
        match self.registry.authorizer.authorize_request(&asked).await {
            Decision::Allow => None,
            Decision::Forbidden(refusal) => Some(Forbidden::of(&asked, &refusal.reason).message),
        }
    }
}

fn allocation(status: &Object) -> Option<&Value> {
    status.get("allocation").filter(|allocation| !allocation.is_null())
}

/// What tells the devices of a claim apart: driver, pool, device and share.
type DeviceKey<'a> = [&'a str; 4];

/// What is told of devices.
fn devices(status: &Object) -> BTreeMap<DeviceKey<'_>, &Object> {
    let known = status.array("devices").iter().filter_map(Value::as_object);
    let parts = ["driver", "pool", "device", "shareID"];
    known.map(|device| (parts.map(|name| device.str(name).unwrap_or_default()), device)).collect()
}

/// The drivers of which something else is told than before (`getModifiedDrivers`).
fn changed_drivers(status: Statuses<'_>) -> BTreeSet<&str> {
    let (new, old) = (devices(status.new), devices(status.old));
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let other = new.iter().filter(|(key, device)| old.get(*key) != Some(device)).map(|(key, _)| key);
    gone.chain(other).map(|[driver, ..]| *driver).collect()
}

/// The node that an allocation is bound to, if it is bound to one (`nodeNameFromAllocation`).
fn allocated_node(status: &Object) -> Option<&str> {
    let terms = status.at(&["allocation", "nodeSelector", "nodeSelectorTerms"]).and_then(Value::as_array)?;
    let [term] = terms else { return None };
    let term = term.as_object().filter(|term| term.array("matchExpressions").is_empty())?;
    let [field] = term.array("matchFields") else { return None };
    let field = field.as_object()?;
    let is_name = field.str("key") == Some("metadata.name") && field.str("operator") == Some("In");
    match field.array("values") {
        [Value::String(name)] if is_name => Some(name.as_str()),
        _ => None,
    }
}

/// Whether a service account shows that it runs on a node (`saAssociatedWithAllocatedNode`).
fn runs_on(user: &Identity, node: &str) -> bool {
    let account = user.name().strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let is_account = account.is_some_and(|(namespace, name)| {
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty()
    });
    let nodes = user.extra().iter().find(|(key, _)| key == NODE_NAME).map(|(_, nodes)| nodes.as_slice());
    is_account && names::dns1123_subdomain(node).is_empty() && matches!(nodes, Some([name]) if name == node)
}
