//! [`Publication`]: what a catalog is told to clients as, ready to be sent.
//!
//! The catalog changes whenever a custom resource is defined, and there may be thousands of them. So what is said of a
//! group and version is kept for as long as its resources stay the same, and nothing is made before somebody asks for
//! it. What the documents say is decided in [`discovery`](crate::discovery) and [`openapi`](crate::openapi).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use revisor_catalog::{Catalog, GroupVersion};

use crate::discovery::{GroupDocuments, ListDocuments, VersionDocuments};
use crate::openapi::{Constants, Descriptions, OpenApiDocuments, VersionOpenApi};

/// The publication of the newest catalog.
#[derive(Debug)]
pub(crate) struct Publications {
    newest: Mutex<Option<Arc<Publication>>>,
    /// What the documents call their version.
    release: Arc<str>,
    texts: Arc<OnceLock<Descriptions>>,
}

/// All that is told of one catalog.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) catalog: Arc<Catalog>,
    /// What is said of all that is built in, and outlives the catalog if the next one has the same.
    pub(crate) constants: Arc<Constants>,
    /// In the order of discovery.
    pub(crate) versions: Vec<Arc<PublishedVersion>>,
    /// In the order of discovery; the core group has no name.
    pub(crate) groups: Vec<PublishedGroup>,
    versions_by_path: HashMap<String, usize>,
    groups_by_name: HashMap<String, usize>,
    pub(crate) lists: ListDocuments,
    pub(crate) openapi: OpenApiDocuments,
}

/// What is told of a group.
#[derive(Debug)]
pub(crate) struct PublishedGroup {
    pub(crate) name: String,
    /// In the order of preference.
    pub(crate) versions: Vec<Arc<PublishedVersion>>,
    pub(crate) documents: GroupDocuments,
}

/// What is told of a group and version. Outlives the catalog if the next one has the same resources there.
#[derive(Debug)]
pub(crate) struct PublishedVersion {
    pub(crate) known: Arc<GroupVersion>,
    pub(crate) documents: VersionDocuments,
    pub(crate) openapi: VersionOpenApi,
}

impl Publications {
    pub(crate) fn new(release: &str) -> Publications {
        Publications { newest: Mutex::new(None), release: release.into(), texts: Arc::default() }
    }

    /// The publication of this catalog.
    pub(crate) fn of(&self, catalog: &Arc<Catalog>) -> Arc<Publication> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(known) if Arc::ptr_eq(&known.catalog, catalog) => known.clone(),
            before => {
                let made = Arc::new(self.publish(catalog, before.as_deref()));
                *newest = Some(made.clone());
                made
            }
        }
    }

    fn publish(&self, catalog: &Arc<Catalog>, before: Option<&Publication>) -> Publication {
        let mut versions = Vec::new();
        let mut versions_by_path = HashMap::new();
        let mut groups: Vec<PublishedGroup> = Vec::new();
        let mut groups_by_name: HashMap<String, usize> = HashMap::new();
        for known in catalog.group_versions() {
            let path = path_of(known);
            let kept = before.and_then(|before| before.version(&path)).filter(|kept| has_same_resources(kept, known));
            let version = kept.cloned().unwrap_or_else(|| Arc::new(PublishedVersion::new(known)));
            let group = *groups_by_name.entry(known.group.to_string()).or_insert_with(|| {
                let name = known.group.to_string();
                groups.push(PublishedGroup { name, versions: Vec::new(), documents: OnceLock::new() });
                groups.len() - 1
            });
            groups[group].versions.push(version.clone());
            // Of two with one name the first is served.
            versions_by_path.entry(path).or_insert(versions.len());
            versions.push(version);
        }
        let built_in: Vec<String> = versions
            .iter()
            .filter(|version: &&Arc<PublishedVersion>| version.is_built_in())
            .map(|version| path_of(&version.known))
            .collect();
        let kept = before.map(|before| &before.constants).filter(|kept| kept.is_about(&built_in));
        let make = || Arc::new(Constants::new(self.release.clone(), self.texts.clone(), built_in.clone()));
        Publication {
            catalog: catalog.clone(),
            constants: kept.cloned().unwrap_or_else(make),
            versions,
            groups,
            versions_by_path,
            groups_by_name,
            lists: ListDocuments::default(),
            openapi: OpenApiDocuments::default(),
        }
    }
}

impl Publication {
    /// The group and version at this path.
    pub(crate) fn version(&self, path: &str) -> Option<&Arc<PublishedVersion>> {
        self.versions_by_path.get(path).map(|at| &self.versions[*at])
    }

    /// The group with this name.
    pub(crate) fn group(&self, name: &str) -> Option<&PublishedGroup> {
        self.groups_by_name.get(name).map(|at| &self.groups[*at])
    }
}

impl PublishedVersion {
    fn new(known: &Arc<GroupVersion>) -> PublishedVersion {
        PublishedVersion {
            known: known.clone(),
            documents: VersionDocuments::default(),
            openapi: VersionOpenApi::default(),
        }
    }

    /// Whether something built in is among its resources.
    pub(crate) fn is_built_in(&self) -> bool {
        self.known.resources.iter().any(|resource| resource.custom().is_none())
    }
}

fn has_same_resources(kept: &PublishedVersion, known: &GroupVersion) -> bool {
    let (old, new) = (&kept.known.resources, &known.resources);
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
}

/// Where a group and version is found: `/api/v1`, `/apis/apps/v1`.
pub(crate) fn path_of(known: &GroupVersion) -> String {
    match known.group.as_str() {
        "" => format!("/api/{}", known.version),
        group => format!("/apis/{group}/{}", known.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom_fixture::{defined, with_definition};

    #[test]
    fn what_did_not_change_is_made_once() {
        let publications = Publications::new("1.36");
        let built_in = Arc::new(Catalog::default());
        let first = publications.of(&built_in);
        assert!(Arc::ptr_eq(&first, &publications.of(&built_in)), "the same catalog is the same publication");
        first.resources("/apis/apps/v1").expect("is served");

        let with_one = Arc::new(with_definition(&built_in, &defined("a.example.com", "Gadget", "{}")));
        let second = publications.of(&with_one);
        assert!(second.resources("/apis/a.example.com/v1").is_some());
        assert!(first.resources("/apis/a.example.com/v1").is_none());
        let with_two = Arc::new(with_definition(&with_one, &defined("b.example.com", "Gadget", "{}")));
        let third = publications.of(&with_two);
        for path in ["/api/v1", "/apis/apps/v1", "/apis/a.example.com/v1"] {
            let version = |publication: &Publication| publication.version(path).expect("is served").clone();
            assert!(Arc::ptr_eq(&version(&second), &version(&third)), "{path}");
        }
        assert!(Arc::ptr_eq(&first.constants, &third.constants), "what is built in stayed the same");
        let redefined = defined("a.example.com", "Gadget", r#"{"type":"object","description":"new"}"#);
        let fourth = publications.of(&Arc::new(with_definition(&with_two, &redefined)));
        let version = |publication: &Publication, path| publication.version(path).expect("is served").clone();
        let (a, b) = ("/apis/a.example.com/v1", "/apis/b.example.com/v1");
        assert!(!Arc::ptr_eq(&version(&third, a), &version(&fourth, a)));
        assert!(Arc::ptr_eq(&version(&third, b), &version(&fourth, b)));
    }
}
