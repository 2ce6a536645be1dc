//! The admission policies of the cluster on the way of a write: which of them are asked ([`Write::matches`]), in which
//! version, with which parameters. What they answer is in `revisor-admission`; what becomes of that in
//! [`validating`](self::validating) and [`mutating`](self::mutating).

mod mutating;
mod params;
mod validating;
mod view;

use std::sync::Arc;

use revisor_admission::{GroupVersionKind, GroupVersionResource, MatchResources, Unmatched};
use revisor_catalog::{Catalog, Resource};
use revisor_object::{Object, ResourceRef, Status, StatusCause, Value};

pub(super) use self::mutating::MutatingAdmissionPolicy;
pub(super) use self::validating::ValidatingAdmissionPolicy;

use super::{Attributes, Conditioned, Phase, kind_of, resource_of};
use crate::policy_book::GROUP;
use crate::{Registry, RegistryError};

/// What policies decide about other writes by. Stored ones do not decide about themselves, so that nobody locks everybody
/// out; those of manifests do.
const OWN: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// What every cluster asks about to work at all, and nothing is stored of (upstream: `exclusion.Excluded`).
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Which policies have a say in a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Say {
    All,
    /// Those of manifests.
    Static,
    None,
}

impl Say {
    fn of(attributes: &Attributes<'_>) -> Say {
        let (group, plural) = attributes.resource.name();
        if attributes.is_own_write() || REVIEWS.contains(&(group, plural)) {
            Say::None
        } else if group == GROUP && OWN.contains(&plural) {
            Say::Static
        } else {
            Say::All
        }
    }
}

/// A policy as its match conditions are counted. As in the original, those of mutating ones are called by the same word.
fn conditioned<'a>(name: &'a str, attributes: &Attributes<'_>) -> Conditioned<'a> {
    Conditioned { name, kind: "policy", phase: Phase::Validate, operation: attributes.operation }
}

/// A write as policies are asked about it.
struct Write<'a> {
    registry: &'a Registry,
    attributes: &'a Attributes<'a>,
    catalog: Arc<Catalog>,
    /// The versions of the resource by which it can be meant.
    equivalents: Vec<Arc<Resource>>,
    options: Option<Object>,
}

/// By which version of its resource a write is meant.
#[derive(Clone, Copy)]
struct Meant<'w> {
    version: &'w Arc<Resource>,
    /// What the object is, as it is shown.
    kind: GroupVersionKind<'w>,
}

impl Meant<'_> {
    /// The API version in which the object is shown.
    fn api_version(&self) -> String {
        match self.kind.group {
            "" => self.kind.version.to_owned(),
            group => format!("{group}/{}", self.kind.version),
        }
    }
}

impl<'a> Write<'a> {
    fn new(registry: &'a Registry, attributes: &'a Attributes<'a>) -> Write<'a> {
        Write {
            registry,
            attributes,
            catalog: registry.catalog(),
            equivalents: registry.equivalents(attributes),
            options: attributes.options.to_object(),
        }
    }

    fn namespace(&self) -> &'a str {
        self.attributes.request_namespace()
    }

    /// The version by which a policy or a binding means this write, of which `object` is the new one; an error if that
    /// cannot be told.
    fn matches(&self, resources: &MatchResources, object: Option<&Object>) -> Result<Option<Meant<'_>>, String> {
        let equivalents: Vec<GroupVersionResource<'_>> =
            self.equivalents.iter().map(|resource| resource_of(resource)).collect();
        // What has no metadata has no labels that it could be selected by, not even by their absence.
        let objects = [object, self.attributes.old].map(|object| object.filter(|object| object.contains("metadata")));
        let found = resources.matches(&self.attributes.rule_target(), &equivalents, objects, || {
            let namespace = self.namespace_object().ok_or(());
            let labels = |namespace: Arc<Object>| {
                namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().map(Box::new)
            };
            namespace.map(labels)
        });
        match found {
            Ok(found) => Ok(found.map(|resource| self.meant(resource))),
            Err(Unmatched::Namespace(())) => Err(format!("namespaces {:?} not found", self.namespace())),
            Err(Unmatched::Selector(why)) => Err(format!("Internal error occurred: {why}")),
        }
    }

    /// What this write is in a version of its resource.
    fn meant(&self, resource: GroupVersionResource<'_>) -> Meant<'_> {
        let same = self.equivalents.iter().find(|known| resource_of(known) == resource);
        let version = same.unwrap_or(self.attributes.shown);
        Meant { version, kind: self.attributes.own_kind.unwrap_or_else(|| kind_of(version)) }
    }

    fn namespace_object(&self) -> Option<Arc<Object>> {
        self.registry.read_once("", "v1", "namespaces", None, self.namespace())
    }

    /// The namespace as expressions see it: nothing if the object is in none, or is one itself.
    fn shown_namespace(&self) -> Result<Option<Arc<Object>>, RegistryError> {
        let kind = self.attributes.request_kind();
        let is_namespace = kind == GroupVersionKind { group: "", version: "v1", kind: "Namespace" };
        if self.namespace().is_empty() || is_namespace {
            return Ok(None);
        }
        self.namespace_object().map(Some).ok_or_else(|| RegistryError::NoSuchNamespace(self.namespace().to_owned()))
    }

    /// The refusal of this write, of which `object` is the new one (upstream: `admission.NewForbidden`).
    fn forbidden(&self, object: Option<&Object>, reason: &str, denials: Vec<String>) -> Status {
        let of_object = |name| object.and_then(|object| object.at(&["metadata", name])).and_then(Value::as_str);
        let names = [Some(self.attributes.name), of_object("name"), of_object("generateName")];
        let name = names.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("Unknown");
        let Resource { group, plural, .. } = &**self.attributes.shown;
        let first = denials.first().map(String::as_str).unwrap_or_default();
        let mut status = Status::forbidden(ResourceRef { group, resource: plural }, name, first);
        status.reason = reason.to_owned().into();
        if let Some(details) = &mut status.details {
            let cause = |message: String| StatusCause { message, ..StatusCause::default() };
            details.causes = denials.into_iter().map(cause).collect();
        }
        status
    }
}
