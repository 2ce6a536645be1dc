//! PodTolerationRestriction: a namespace says which taints its pods tolerate without asking, and which they may.

use revisor_object::{Object, Value, parse_json};

use super::pod_fields::{annotations, spec};
use super::{Admission, Attributes, Operation, tolerations};
use crate::{Registry, RegistryError};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

/// What goes for namespaces that say nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TolerationDefaults {
    /// What new pods tolerate.
    pub default: Vec<Value>,
    /// What pods may tolerate; everything if there is none.
    pub whitelist: Vec<Value>,
}

pub(super) struct PodTolerationRestriction(pub(super) TolerationDefaults);

impl Admission for PodTolerationRestriction {
    fn name(&self) -> &'static str {
        "PodTolerationRestriction"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let mut extra = Vec::new();
        if attributes.operation == Operation::Create {
            extra = of_namespace(registry, attributes, DEFAULTS)?.unwrap_or_else(|| self.0.default.clone());
        }
        if !is_best_effort(spec(pod)) {
            extra.push(Value::from(Object::from_iter([
                ("key", Value::from("node.kubernetes.io/memory-pressure")),
                ("operator", Value::from("Exists")),
                ("effect", Value::from("NoSchedule")),
            ])));
        }
        if !extra.is_empty() {
            let merged = tolerations::merge(spec(pod).array("tolerations"), &extra);
            pod.object_mut("spec").insert("tolerations", merged);
        }
        self.validate(registry, attributes, pod)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        let tolerated = spec(pod).array("tolerations");
        if !attributes.is_about("", "pods") || tolerated.is_empty() {
            return Ok(());
        }
        let (allowed, scope) = match of_namespace(registry, attributes, ALLOWED)? {
            Some(allowed) => (allowed, "namespace"),
            None => (self.0.whitelist.clone(), "cluster"),
        };
        if tolerations::are_allowed(tolerated, &allowed) {
            return Ok(());
        }
        Err(RegistryError::Undecided(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
        )))
    }
}

/// The tolerations in an annotation of the namespace; `None` if it has none.
fn of_namespace(
    registry: &Registry,
    attributes: &Attributes<'_>,
    annotation: &str,
) -> Result<Option<Vec<Value>>, RegistryError> {
    let name = attributes.namespace.unwrap_or_default();
    let namespace = registry.read_once("", "v1", "namespaces", None, name);
    let namespace = namespace.ok_or_else(|| RegistryError::NoSuchNamespace(name.to_owned()))?;
    let Some(text) = annotations(&namespace).str(annotation) else { return Ok(None) };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    // In the words of Go's decoder.
    let mismatch = |found: &Value, wanted: &str| {
        let found = found.type_name();
        RegistryError::Undecided(format!("json: cannot unmarshal {found} into Go value of type {wanted}"))
    };
    match parse_json(text.as_bytes()).map_err(|error| RegistryError::Undecided(error.to_string()))?.value {
        Value::Array(tolerations) => match tolerations.iter().find(|it| it.as_object().is_none()) {
            Some(odd) => Err(mismatch(odd, "v1.Toleration")),
            None => Ok(Some(tolerations)),
        },
        odd => Err(mismatch(&odd, "[]v1.Toleration")),
    }
}

/// Whether a pod asks for nothing and is limited in nothing that counts for its class.
fn is_best_effort(spec: &Object) -> bool {
    let asks = |holder: &Object| {
        let Some(resources) = holder.object("resources") else { return false };
        let lists = ["requests", "limits"].into_iter().filter_map(|list| resources.object(list));
        lists
            .flat_map(Object::iter)
            .any(|(name, amount)| matches!(name, "cpu" | "memory") && !matches!(amount.as_str(), Some("0") | None))
    };
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| spec.array(list));
    !asks(spec) && !containers.filter_map(Value::as_object).any(asks)
}
