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
pub(crate) mod certificates;
pub(crate) mod conditions;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
pub(crate) mod flowcontrol;
mod initiator_name;
mod internal;
pub(crate) mod members;
mod networking;
mod node;
pub(crate) mod node_selectors;
pub(crate) mod pod_spec;
mod policy;
pub(crate) mod rbac;
mod resource;
pub(crate) mod resource_names;
mod scheduling;
pub(crate) mod semantic_version;
mod storage;
mod storagemigration;
pub(crate) mod taints;
#[cfg(test)]
pub(crate) mod tests;
mod versioning;
pub(crate) mod workload;

use std::sync::Arc;

use revisor_cel::RuleEnvironments;
use revisor_object::names::NameRule;
use revisor_object::{FieldErrors, Object};

use pod_spec::PodPolicy;
use revisor_version::Release;

use crate::conversion::Conversion;
use crate::{DeleteAnswer, Features, Part, Rules, SelectableField, Strategy};

/// What the rules of all kinds depend on beside the objects: decided once, when the catalog is built.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Whether containers may be privileged, or processes of the host.
    pub(crate) allow_privileged: bool,
    /// The features that are on.
    pub(crate) features: Features,
    /// What expressions may use: new ones what the oldest release knows that must be able to read them, stored ones all
    /// that the program knows.
    pub(crate) expressions: RuleEnvironments,
    /// The oldest release that must be able to read what is written.
    pub(crate) min_compatibility: Release,
    /// The release that the program is.
    pub(crate) binary: Release,
}

impl Terms {
    /// What concerns pods and everything with a template of them.
    fn pods(&self) -> PodPolicy {
        PodPolicy { allow_privileged: self.allow_privileged, features: self.features }
    }
}

/// What nearly every kind has.
const USUAL: Rules = Rules {
    names: NameRule::Dns1123Subdomain,
    create_on_update: false,
    unconditional_update: true,
    names_nameless: false,
    prefix_is_name: false,
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
    fn validate(&self, _: &Object) -> FieldErrors {
        FieldErrors::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        FieldErrors::new()
    }
}

/// A selectable field with its places.
const fn field(name: &'static str, paths: &'static [&'static [&'static str]]) -> SelectableField {
    SelectableField { name, older_name: "", paths, absent: "" }
}

/// The kind of a resource of the table.
pub(crate) fn kind(group: &str, version: &str, plural: &str, terms: &Terms) -> Option<Kind> {
    match group {
        "" => core::kind(plural, terms),
        "apps" => apps::kind(plural, terms),
        "autoscaling" => autoscaling::kind(plural, terms),
        "batch" => batch::kind(plural, terms),
        "admissionregistration.k8s.io" => admissionregistration::kind(plural, terms),
        "apiextensions.k8s.io" => apiextensions::kind(plural, terms),
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
        "resource.k8s.io" => resource::kind(plural, terms),
        "scheduling.k8s.io" => scheduling::kind(plural, terms),
        "storage.k8s.io" => storage::kind(plural, terms),
        "storagemigration.k8s.io" => storagemigration::kind(version, plural),
        "internal.apiserver.k8s.io" => internal::kind(plural),
        "discovery.k8s.io" => discovery::kind(plural, terms),
        "networking.k8s.io" => networking::kind(plural, terms),
        "versioning.revisor.dev" => versioning::kind(plural),
        _ => None,
    }
}

/// The group and name that the objects of a resource are stored under, where those are not its own.
pub(crate) fn stored_as(group: &str, plural: &str) -> Option<(&'static str, &'static str)> {
    ((group, plural) == ("events.k8s.io", "events")).then_some(("", "events"))
}

/// How the shape of a version differs from the one that objects of its resource are stored in; `None` if it does not.
///
/// Which version they are stored in depends on the releases that a server gets along with. Whatever these are, the shape
/// is one: that of all versions that are not named here. Only where a release has no other version is one of these
/// stored, and converted when a later release finds it (`Resource::read_otherwise`).
pub(crate) fn conversion(group: &str, version: &str, plural: &str) -> Option<Arc<dyn Conversion>> {
    Some(match (group, version) {
        ("autoscaling", "v1") => Arc::new(autoscaling::conversion::FirstVersion),
        ("events.k8s.io", "v1") => Arc::new(events::CoreEvents),
        ("resource.k8s.io", "v1beta1") => resource::beta1::conversion(plural),
        ("storagemigration.k8s.io", "v1alpha1") => Arc::new(storagemigration::alpha1::FirstVersion),
        _ => return None,
    })
}
