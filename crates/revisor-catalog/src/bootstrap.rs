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

/// A flow schema or priority level that every server has.
#[derive(Debug, Clone)]
pub struct BootstrapFlowControl {
    /// Its resource, in version v1 of `flowcontrol.apiserver.k8s.io`.
    pub plural: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Whether the server depends on it, so that nobody may decide otherwise.
    pub is_mandatory: bool,
    /// All of it.
    pub object: Object,
}

impl Catalog {
    /// The roles and bindings that every server with these features has.
    pub fn bootstrap_roles(&self) -> Vec<BootstrapRole> {
        rbac::bootstrap_objects(self.features())
    }

    /// How every server tells requests apart and limits them, unless somebody decides otherwise: its priority levels and
    /// flow schemas.
    pub fn bootstrap_flow_control(&self) -> Vec<BootstrapFlowControl> {
        flowcontrol::bootstrap_objects()
    }

    /// The registrations of all built-in groups and versions that are served, with which every server starts.
    pub fn bootstrap_objects(&self) -> Vec<BootstrapObject> {
        let registration = |group: &str, version: &str| {
            let object = apiregistration::bootstrap_object(group, version)?;
            let name =
                object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default().to_owned();
            Some(BootstrapObject { group: "apiregistration.k8s.io", plural: "apiservices", name, object })
        };
        self.group_versions().iter().filter_map(|served| registration(&served.group, &served.version)).collect()
    }
}
