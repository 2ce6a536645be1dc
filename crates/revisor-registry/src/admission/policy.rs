//! The admission policies of the cluster on the way of a write: which of them are asked ([`Write::matches`]), in which
//! version, with which parameters. What they answer is in `revisor-admission`; what becomes of that in
//! [`validating`](self::validating) and [`mutating`](self::mutating).

mod asked;
mod mutating;
mod params;
mod validating;
mod versioned;
mod view;

use std::sync::Arc;

use revisor_admission::{
    AdmissionRequest, GroupVersionKind, GroupVersionResource, MatchResources, RuleTarget, Unmatched, UserInfo,
};
use revisor_catalog::{Catalog, Resource};
use revisor_object::{Object, Value};

pub(super) use self::mutating::MutatingAdmissionPolicy;
pub(super) use self::validating::ValidatingAdmissionPolicy;

use super::{Attributes, Operation};
use crate::policy_book::GROUP;
use crate::{Registry, RegistryError};

/// What policies decide about other writes by. They do not decide about themselves, so that nobody locks everybody out.
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

/// Whether policies have a say in a write at all.
fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let (group, plural) = attributes.resource.name();
    attributes.is_own_write() || (group == GROUP && OWN.contains(&plural)) || REVIEWS.contains(&(group, plural))
}

/// A write as policies are asked about it.
struct Write<'a> {
    registry: &'a Registry,
    attributes: &'a Attributes<'a>,
    catalog: Arc<Catalog>,
    /// The versions of the resource that can be asked for, where the part of the object that is written is there.
    equivalents: Vec<Arc<Resource>>,
    /// The namespace as rules see it: a namespace is in itself, but for when it is made.
    namespace: &'a str,
    options: Option<Object>,
}

/// By which version of its resource a write is meant.
#[derive(Clone, Copy)]
struct Meant<'w> {
    resource: GroupVersionResource<'w>,
    /// In which the object is shown.
    kind: GroupVersionKind<'w>,
    /// The version itself; `None` if the part that is written is of a kind of its own, which has no others.
    version: Option<&'w Arc<Resource>>,
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
        let shown = attributes.shown;
        let catalog = registry.catalog();
        let has_part =
            |resource: &Resource| attributes.subresource.is_none_or(|name| resource.subresource(name).is_some());
        let equivalents = catalog
            .group_versions()
            .iter()
            .flat_map(|known| known.resources.iter())
            .filter(|known| known.plural == shown.plural && known.prefix == shown.prefix && has_part(known))
            .cloned()
            .collect();
        let is_namespace = shown.group.is_empty() && shown.plural == "namespaces";
        let namespace = match attributes.namespace {
            Some(namespace) => namespace,
            None if is_namespace && attributes.operation != Operation::Create => attributes.name,
            None => "",
        };
        let options = attributes.options.to_object();
        Write { registry, attributes, catalog, equivalents, namespace, options }
    }

    fn target(&self) -> RuleTarget<'_> {
        RuleTarget {
            resource: name_of(self.attributes.shown),
            subresource: self.attributes.subresource.unwrap_or_default(),
            namespace: self.namespace,
            name: self.attributes.name,
            operation: operation(self.attributes.operation),
        }
    }

    /// The version by which a policy or a binding means this write, of which `object` is the new one; an error if that
    /// cannot be told.
    fn matches(&self, resources: &MatchResources, object: Option<&Object>) -> Result<Option<Meant<'_>>, String> {
        let equivalents: Vec<GroupVersionResource<'_>> = self.equivalents.iter().map(name_of).collect();
        let objects = [object, self.attributes.old];
        let found = resources.matches(&self.target(), &equivalents, objects, || {
            let namespace = self.namespace_object().ok_or_else(|| format!("namespaces {:?} not found", self.namespace));
            namespace.map(|namespace| namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().map(Box::new))
        });
        match found {
            Ok(found) => found.map(|resource| self.meant(resource)).transpose(),
            Err(Unmatched::Namespace(why)) => Err(why),
            Err(Unmatched::Selector(why)) => Err(format!("Internal error occurred: {why}")),
        }
    }

    /// What this write is in a version of its resource.
    fn meant<'w>(&'w self, resource: GroupVersionResource<'w>) -> Result<Meant<'w>, String> {
        let own = self.own_kind();
        let unknown = || format!("unable to convert to {resource}: unknown kind");
        if resource == name_of(self.attributes.shown) {
            return Ok(match own {
                Some(kind) => Meant { resource, kind: kind_of(kind), version: None },
                None => {
                    Meant { resource, kind: kind_of(self.attributes.shown), version: Some(self.attributes.shown) }
                }
            });
        }
        let version = self.equivalents.iter().find(|known| name_of(known) == resource).ok_or_else(unknown)?;
        let part = self.attributes.subresource.and_then(|name| version.subresource(name));
        Ok(match part.and_then(|part| part.other_kind) {
            Some((api_version, kind)) => {
                let api_version = if api_version.is_empty() { &version.api_version } else { api_version };
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                Meant { resource, kind: GroupVersionKind { group, version, kind }, version: None }
            }
            None => Meant { resource, kind: kind_of(version), version: Some(version) },
        })
    }

    /// The kind of the part that is written, where that is not the kind of the object.
    fn own_kind(&self) -> Option<&'a Arc<Resource>> {
        Some(self.attributes.kind).filter(|kind| !Arc::ptr_eq(kind, self.attributes.resource))
    }

    /// The namespace of the object, unless it is in none or is one itself.
    fn namespace_object(&self) -> Option<Arc<Object>> {
        let namespaces = self.registry.catalog.resource("", "v1", "namespaces")?;
        let item = self.registry.cache_of(namespaces).get(&namespaces.key(None, self.namespace))?;
        self.registry.policy_objects.read(&item)
    }

    /// The namespace as expressions see it.
    fn shown_namespace(&self) -> Result<Option<Arc<Object>>, RegistryError> {
        let is_namespace = kind_of(self.attributes.shown) == GroupVersionKind { group: "", version: "v1", kind: "Namespace" };
        if self.namespace.is_empty() || is_namespace {
            return Ok(None);
        }
        self.namespace_object().map(Some).ok_or_else(|| RegistryError::NoSuchNamespace(self.namespace.to_owned()))
    }

    /// What expressions are told of the write, if they are asked about it in this way.
    fn request<'w>(&'w self, meant: Meant<'w>) -> AdmissionRequest<'w> {
        let attributes = self.attributes;
        let requester = attributes.requester;
        AdmissionRequest {
            kind: meant.kind,
            resource: meant.resource,
            request_kind: kind_of(self.own_kind().unwrap_or(attributes.shown)),
            request_resource: name_of(attributes.shown),
            subresource: attributes.subresource.unwrap_or_default(),
            name: attributes.name,
            namespace: self.namespace,
            operation: operation(attributes.operation),
            user: UserInfo {
                username: requester.name,
                uid: requester.uid,
                groups: requester.groups,
                extra: requester.extra,
            },
            dry_run: attributes.dry_run,
            options: self.options.as_ref(),
        }
    }

    /// What a denial calls the object (upstream: `extractResourceName`).
    fn name(&self, object: Option<&Object>) -> String {
        let of_object = |name| object.and_then(|object| object.at(&["metadata", name])).and_then(Value::as_str);
        let names = [Some(self.attributes.name), of_object("name"), of_object("generateName")];
        let found = names.into_iter().flatten().find(|name| !name.is_empty());
        found.unwrap_or("Unknown").to_owned()
    }
}

fn name_of(resource: &Arc<Resource>) -> GroupVersionResource<'_> {
    GroupVersionResource { group: &resource.group, version: &resource.version, resource: &resource.plural }
}

fn kind_of(resource: &Arc<Resource>) -> GroupVersionKind<'_> {
    GroupVersionKind { group: &resource.group, version: &resource.version, kind: &resource.kind }
}

fn operation(operation: Operation) -> revisor_admission::Operation {
    match operation {
        Operation::Create => revisor_admission::Operation::Create,
        Operation::Update => revisor_admission::Operation::Update,
        Operation::Delete => revisor_admission::Operation::Delete,
        Operation::Connect => revisor_admission::Operation::Connect,
    }
}
