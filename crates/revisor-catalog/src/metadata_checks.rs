//! [`MetadataChecks`]: how often the rules of a kind look at the metadata of a changed object.
//!
//! The original asks the same of the metadata of every changed object, whatever its kind. Most kinds ask again, by their
//! own rules, and what is wrong is told as often as it was found. Which kinds do is a matter of history, so it is a
//! table.

use crate::{Part, Resource};

/// How often the rules of a kind look at the metadata of a changed object, beyond what every object is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChecks {
    /// As at those of a new object (upstream: `ValidateObjectMeta`), with the names that the kind allows.
    pub as_new: usize,
    /// As at those of a changed one (upstream: `ValidateObjectMetaUpdate`).
    pub as_changed: usize,
}

const fn checks(as_new: usize, as_changed: usize) -> MetadataChecks {
    MetadataChecks { as_new, as_changed }
}

impl Resource {
    /// Whether its rules look at the metadata of a new object. Where they do not, only what every object is asked is
    /// asked of it, and not before all else is well (upstream: `BeforeCreate`).
    pub fn looks_at_new_metadata(&self) -> bool {
        !matches!((&*self.group, &*self.plural), ("", "events") | ("policy", "poddisruptionbudgets"))
    }

    /// How often its rules look at the metadata when this part of an object was written.
    pub fn metadata_checks(&self, part: Part<'_>) -> MetadataChecks {
        if self.custom().is_some() {
            return checks(0, 1);
        }
        match (&*self.group, &*self.plural, part) {
            ("apiextensions.k8s.io", _, _) => checks(0, 1),
            ("policy", "poddisruptionbudgets", _) | ("internal.apiserver.k8s.io", _, _) => checks(0, 0),
            ("certificates.k8s.io", "certificatesigningrequests", _) => checks(1, 1),
            ("storage.k8s.io", "volumeattachments", _) => checks(1, 0),
            ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _, Part::Subresource(_))
            | ("batch", "cronjobs", Part::Subresource(_)) => checks(0, 0),
            (_, _, Part::Subresource(_)) => checks(0, 1),
            ("", "events", Part::Whole) => checks(0, 0),
            ("", "persistentvolumes", Part::Whole) => checks(2, 0),
            ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _, Part::Whole)
            | ("", "limitranges", Part::Whole)
            | ("discovery.k8s.io", "endpointslices", Part::Whole)
            | ("storage.k8s.io", "csinodes", Part::Whole) => checks(1, 0),
            ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets", Part::Whole)
            | ("", "podtemplates" | "replicationcontrollers" | "resourcequotas" | "services", Part::Whole)
            | ("autoscaling" | "coordination.k8s.io" | "events.k8s.io", _, Part::Whole)
            | ("batch", "cronjobs", Part::Whole)
            | ("networking.k8s.io", "networkpolicies" | "servicecidrs", Part::Whole)
            | ("certificates.k8s.io", "podcertificaterequests", Part::Whole)
            | ("resource.k8s.io", "devicetaintrules" | "resourcepoolstatusrequests" | "resourceslices", Part::Whole)
            | ("scheduling.k8s.io", _, Part::Whole)
            | ("storage.k8s.io", "csidrivers", Part::Whole) => checks(0, 1),
            (_, _, Part::Whole) => checks(1, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, CatalogOptions};

    #[test]
    fn metadata_is_looked_at_as_often_as_the_original_does() {
        let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is all of it");
        let (whole, status) = (Part::Whole, Part::STATUS);
        for (group, version, plural, part, want) in [
            ("", "v1", "pods", whole, checks(1, 1)),
            ("", "v1", "pods", status, checks(0, 1)),
            ("certificates.k8s.io", "v1beta1", "podcertificaterequests", whole, checks(0, 1)),
            ("internal.apiserver.k8s.io", "v1alpha1", "storageversions", whole, checks(0, 0)),
            ("internal.apiserver.k8s.io", "v1alpha1", "storageversions", status, checks(0, 0)),
            ("policy", "v1", "poddisruptionbudgets", whole, checks(0, 0)),
            ("resource.k8s.io", "v1", "deviceclasses", whole, checks(1, 1)),
            ("resource.k8s.io", "v1", "resourceslices", whole, checks(0, 1)),
            ("scheduling.k8s.io", "v1", "priorityclasses", whole, checks(0, 1)),
            ("scheduling.k8s.io", "v1alpha2", "workloads", whole, checks(0, 1)),
        ] {
            let resource = catalog.resource(group, version, plural).unwrap_or_else(|| panic!("{plural} is there"));
            assert_eq!(resource.metadata_checks(part), want, "{plural} {part:?}");
        }
    }
}
