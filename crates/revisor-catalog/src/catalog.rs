//! [`Catalog`]: all resources that are served, found by group, version and name.

use std::sync::Arc;

use revisor_schema::Types;

use crate::Resource;
use crate::rows::{FIELDS, rows};

/// A group and one of its versions that is served.
#[derive(Debug, Clone)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Its resources, in the order of their names.
    pub resources: Vec<Arc<Resource>>,
}

/// All resources that are served.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// In the order of discovery.
    group_versions: Vec<GroupVersion>,
    types: Arc<Types>,
}

impl Catalog {
    /// The catalog of the built-in rows.
    ///
    /// # Panics
    /// If the built-in tables contradict themselves: a fault of the program that its tests find.
    pub fn build() -> Catalog {
        let types = Arc::new(Types::parse(FIELDS).expect("the table of fields is well formed"));
        let mut catalog = Catalog { group_versions: Vec::new(), types: types.clone() };
        for row in rows() {
            if let Some(resource) = row.resource(&types) {
                catalog.insert(Arc::new(resource));
            }
        }
        catalog
    }

    fn insert(&mut self, resource: Arc<Resource>) {
        let (group, version) = (resource.group, resource.version);
        let known = self.group_versions.iter_mut().find(|known| (known.group, known.version) == (group, version));
        let resources = match known {
            Some(known) => &mut known.resources,
            None => {
                self.group_versions.push(GroupVersion { group, version, resources: Vec::new() });
                &mut self.group_versions.last_mut().expect("was pushed").resources
            }
        };
        let at = resources.partition_point(|known| known.plural < resource.plural);
        resources.insert(at, resource);
    }

    /// The types of all objects and options.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// The resource with this name in paths.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let resources = &self.group_version(group, version)?.resources;
        let at = resources.binary_search_by(|known| known.plural.cmp(plural)).ok()?;
        Some(&resources[at])
    }

    /// Whether any version of this group is served.
    pub fn has_group(&self, group: &str) -> bool {
        self.group_versions.iter().any(|known| known.group == group)
    }

    /// The group and version, if they are served.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&GroupVersion> {
        self.group_versions.iter().find(|known| (known.group, known.version) == (group, version))
    }

    /// Every group and version, in the order of discovery.
    pub fn group_versions(&self) -> &[GroupVersion] {
        &self.group_versions
    }

    /// Every resource.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.group_versions.iter().flat_map(|known| &known.resources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_tables_are_consistent() {
        let catalog = Catalog::build();
        let mut prefixes: Vec<&str> = catalog.resources().map(|resource| resource.prefix.as_str()).collect();
        prefixes.sort_unstable();
        for pair in prefixes.windows(2) {
            assert!(!pair[1].starts_with(pair[0]), "{} and {} would share keys", pair[0], pair[1]);
        }
    }

    #[test]
    fn resources_are_found_by_group_version_and_name_only() {
        let catalog = Catalog::build();
        assert_eq!(catalog.resource("", "v1", "configmaps").map(|found| found.kind), Some("ConfigMap"));
        assert!(catalog.resource("", "v1", "leases").is_none());
        assert!(catalog.resource("coordination.k8s.io", "v1", "leases").is_some());
        assert!(catalog.resource("coordination.k8s.io", "v2", "leases").is_none());
    }
}
