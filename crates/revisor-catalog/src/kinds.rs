//! The rules of the built-in kinds, by group. A resource of the table is served when its group knows its [`Kind`].

mod addresses;
mod admissionregistration;
pub(crate) mod amounts;
pub(crate) mod apiextensions;
pub(crate) mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
pub(crate) mod conditions;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
pub(crate) mod flowcontrol;
mod internal;
pub(crate) mod members;
mod networking;
mod node;
pub(crate) mod node_selectors;
pub(crate) mod pod_spec;
mod policy;
mod rbac;
mod resource;
pub(crate) mod resource_names;
mod scheduling;
pub(crate) mod semantic_version;
mod storage;
mod storagemigration;
pub(crate) mod taints;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod workload;

use std::sync::Arc;

use revisor_object::names::NameRule;
use revisor_object::{FieldError, Object};

pub(crate) use pod_spec::PodPolicy;

use crate::conversion::{Conversion, SameShape};
use crate::{DeleteAnswer, Part, Rules, SelectableField, Strategy};

/// What nearly every kind has.
const USUAL: Rules = Rules {
    names: NameRule::Dns1123Subdomain,
    create_on_update: false,
    unconditional_update: true,
    names_nameless: false,
    validates_metadata: true,
    known_finalizers: true,
    delete_answer: DeleteAnswer::Status,
};

/// What a kind has beyond its row in the table.
pub(crate) struct Kind {
    pub(crate) rules: Rules,
    /// What field selectors may name beside the name and the namespace.
    pub(crate) selectable: Vec<SelectableField>,
    /// Whether field selectors may name the namespace, where that is not as usual: for kinds in namespaces only.
    pub(crate) selects_namespace: Option<bool>,
    pub(crate) strategy: Arc<dyn Strategy>,
}

impl Kind {
    /// A kind that only has a strategy of its own.
    pub(crate) fn usual(strategy: impl Strategy) -> Kind {
        Kind { rules: USUAL, selectable: Vec::new(), selects_namespace: None, strategy: Arc::new(strategy) }
    }

    /// A kind that nothing but the types of its fields is demanded of.
    pub(crate) fn without_rules() -> Kind {
        Kind::usual(NoRules)
    }

    /// The same kind, whose field selectors may name the namespace also where its objects are in none.
    fn selecting_namespace(self) -> Kind {
        Kind { selects_namespace: Some(true), ..self }
    }
}

/// A kind without rules.
struct NoRules;

impl Strategy for NoRules {
    fn validate(&self, _: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> Vec<FieldError> {
        Vec::new()
    }
}

/// A selectable field with its places.
const fn field(name: &'static str, paths: &'static [&'static [&'static str]]) -> SelectableField {
    SelectableField { name, paths, absent: "" }
}

/// The kind of a resource of the table.
pub(crate) fn kind(group: &str, plural: &str, pods: PodPolicy) -> Option<Kind> {
    match group {
        "" => core::kind(plural, pods),
        "apps" => apps::kind(plural, pods),
        "autoscaling" => autoscaling::kind(plural),
        "batch" => batch::kind(plural, pods),
        "admissionregistration.k8s.io" => admissionregistration::kind(plural),
        "apiextensions.k8s.io" => apiextensions::kind(plural),
        "apiregistration.k8s.io" => apiregistration::kind(plural),
        "authentication.k8s.io" => authentication::kind(plural),
        "authorization.k8s.io" => authorization::kind(plural),
        "certificates.k8s.io" => certificates::kind(plural),
        "coordination.k8s.io" => coordination::kind(plural),
        "events.k8s.io" => events::kind(plural),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::kind(plural),
        "rbac.authorization.k8s.io" => rbac::kind(plural),
        "node.k8s.io" => node::kind(plural),
        "policy" => policy::kind(plural),
        "resource.k8s.io" => resource::kind(plural),
        "scheduling.k8s.io" => scheduling::kind(plural),
        "storage.k8s.io" => storage::kind(plural),
        "storagemigration.k8s.io" => storagemigration::kind(plural),
        "internal.apiserver.k8s.io" => internal::kind(plural),
        "discovery.k8s.io" => discovery::kind(plural),
        "networking.k8s.io" => networking::kind(plural),
        _ => None,
    }
}

/// A version of a resource that is stored in another one.
pub(crate) struct Presentation {
    /// The group, version and name that it is stored as.
    pub(crate) stored: (&'static str, &'static str, &'static str),
    pub(crate) conversion: Arc<dyn Conversion>,
}

/// How a resource of the table is stored, where that is not in its own version: the newest and most stable one is that
/// the release before this one can read too, so that a server can be taken back.
pub(crate) fn presentation(group: &str, version: &str, plural: &'static str) -> Option<Presentation> {
    let same =
        |group, version| Some(Presentation { stored: (group, version, plural), conversion: Arc::new(SameShape) });
    match (group, version, plural) {
        ("admissionregistration.k8s.io", "v1" | "v1alpha1", _) if plural.starts_with("mutatingadmissionpolic") => {
            same("admissionregistration.k8s.io", "v1beta1")
        }
        ("autoscaling", "v1", _) => Some(Presentation {
            stored: ("autoscaling", "v2", plural),
            conversion: Arc::new(autoscaling::conversion::FirstVersion),
        }),
        ("certificates.k8s.io", "v1alpha1", _) => same("certificates.k8s.io", "v1beta1"),
        ("coordination.k8s.io", "v1alpha2", _) => same("coordination.k8s.io", "v1beta1"),
        ("events.k8s.io", "v1", "events") => {
            Some(Presentation { stored: ("", "v1", "events"), conversion: Arc::new(events::CoreEvents) })
        }
        ("networking.k8s.io", "v1beta1", _) => same("networking.k8s.io", "v1"),
        ("resource.k8s.io", "v1beta2", "devicetaintrules") => same("resource.k8s.io", "v1alpha3"),
        ("resource.k8s.io", "v1beta2", _) => same("resource.k8s.io", "v1"),
        ("resource.k8s.io", "v1beta1", _) => Some(Presentation {
            stored: ("resource.k8s.io", "v1", plural),
            conversion: resource::beta1::conversion(plural),
        }),
        ("storage.k8s.io", "v1beta1", _) => same("storage.k8s.io", "v1"),
        _ => None,
    }
}
