//! The objects that every server starts with because of what it serves.

use revisor_object::Object;

use crate::Catalog;
use crate::kinds::{apiregistration, flowcontrol, rbac};

/// An object without a namespace that every server has from its first moment.
#[derive(Debug, Clone)]
pub struct BootstrapObject {
    /// The group of its resource, in version v1.
    pub group: &'static str,
    /// Its resource.
    pub plural: &'static str,
    /// Its name.
    pub name: String,
    /// All of it, with the status that the server gives it.
    pub object: Object,
}

/// A role or a binding that every server has, and keeps at least as wide as it was meant to be.
#[derive(Debug, Clone)]
pub struct BootstrapRole {
    /// Its resource, in version v1 of `rbac.authorization.k8s.io`.
    pub plural: &'static str,
    /// Its namespace, if it is of one.
    pub namespace: Option<&'static str>,
    /// Its name.
    pub name: &'static str,
    /// All of it.
    pub object: Object,
}

impl Catalog {
    /// The roles and bindings that every server has.
    pub fn bootstrap_roles(&self) -> Vec<BootstrapRole> {
        rbac::bootstrap_objects()
    }

    /// The objects that every server with this catalog starts with, as they are at `now`: how requests are told apart
    /// and limited, and the registrations of all built-in groups and versions that are served.
    pub fn bootstrap_objects(&self, now: &str) -> Vec<BootstrapObject> {
        let mut objects = Vec::new();
        let mut add = |group, plural, object: Object| {
            let name = object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default();
            objects.push(BootstrapObject { group, plural, name: name.to_owned(), object });
        };
        for plural in ["prioritylevelconfigurations", "flowschemas"] {
            for object in flowcontrol::bootstrap_objects(plural, now) {
                add("flowcontrol.apiserver.k8s.io", plural, object);
            }
        }
        for served in self.group_versions() {
            if let Some(object) = apiregistration::bootstrap_object(&served.group, &served.version) {
                add("apiregistration.k8s.io", "apiservices", object);
            }
        }
        objects
    }
}
