//! [`Publication`]: what a catalog is told to clients as, ready to be sent.
//!
//! The catalog changes whenever a custom resource is defined, and there may be thousands of them. So what is said of a
//! group and version is kept for as long as its resources stay the same, and nothing is made before somebody asks for
//! it. What the documents say is decided in [`discovery`](crate::discovery) and [`openapi`](crate::openapi). What other
//! servers serve is told beside that, in the order that APIServices ask for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use revisor_aggregator::{Registration, RemoteVersion, View};
use revisor_catalog::{Catalog, GroupVersion};
use revisor_version::ApiVersion;

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
    /// What other servers serve, if there may be any.
    pub(crate) view: Option<Arc<View>>,
    /// The OpenAPI documents that others have: where they are, and whose they are.
    pub(crate) documents_of_others: OnceLock<BTreeMap<String, (String, Arc<Registration>)>>,
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

    /// The publication of this catalog alone.
    #[cfg(test)]
    pub(crate) fn of(&self, catalog: &Arc<Catalog>) -> Arc<Publication> {
        self.of_all(catalog, None)
    }

    /// The publication of this catalog and of what other servers serve.
    pub(crate) fn of_all(&self, catalog: &Arc<Catalog>, view: Option<&Arc<View>>) -> Arc<Publication> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(known) if Arc::ptr_eq(&known.catalog, catalog) && is_same_view(known.view.as_ref(), view) => {
                known.clone()
            }
            before => {
                let made = Arc::new(self.publish(catalog, view, before.as_deref()));
                *newest = Some(made.clone());
                made
            }
        }
    }

    fn publish(&self, catalog: &Arc<Catalog>, view: Option<&Arc<View>>, before: Option<&Publication>) -> Publication {
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
        if let Some(view) = view {
            add_remotes(&mut groups, view);
            groups_by_name = groups.iter().enumerate().map(|(at, group)| (group.name.clone(), at)).collect();
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
            view: view.cloned(),
            documents_of_others: OnceLock::new(),
        }
    }
}

fn is_same_view(one: Option<&Arc<View>>, two: Option<&Arc<View>>) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => Arc::ptr_eq(one, two),
        (None, None) => true,
        _ => false,
    }
}

/// The group that is always told first: the one of those who say what is told.
const FIRST: &str = "apiregistration.k8s.io";

/// Adds what other servers serve, in the place of what is here of the same name, and orders everything as APIServices ask
/// for. What they ask nothing about stays where it is.
fn add_remotes(groups: &mut Vec<PublishedGroup>, view: &View) {
    for remote in view.remote_versions() {
        let at = groups.iter().position(|group| group.name == remote.group).unwrap_or_else(|| {
            groups.push(PublishedGroup {
                name: remote.group.clone(),
                versions: Vec::new(),
                documents: OnceLock::new(),
            });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        let known = versions.iter().position(|known| known.known.version == remote.version.as_str());
        let published = Arc::new(PublishedVersion::remote(&remote));
        match known {
            Some(known) => versions[known] = published,
            None => versions.push(published),
        }
        let group = remote.group;
        versions.sort_by_cached_key(|version| {
            let version = version.known.version.as_str();
            let priority = view.version_priority(&group, version).unwrap_or_default();
            std::cmp::Reverse((priority, version.parse::<ApiVersion>().ok()))
        });
    }
    groups.sort_by_key(|group| match group.name.as_str() {
        "" => std::cmp::Reverse(i64::MAX),
        FIRST => std::cmp::Reverse(i64::MAX - 1),
        name => std::cmp::Reverse(view.group_priority(name).unwrap_or_default()),
    });
}

impl Publication {
    /// The group and version at this path.
    pub(crate) fn version(&self, path: &str) -> Option<&Arc<PublishedVersion>> {
        self.versions_by_path.get(path).map(|at| &self.versions[*at])
    }

    /// Whose the OpenAPI document at this path is, if it is not this server's.
    pub(crate) fn document_of_another(&self, path: &str) -> Option<Arc<Registration>> {
        self.view.as_ref()?;
        let (_, registration) = self.documents_of_others().get(path.trim_start_matches('/'))?;
        Some(registration.clone())
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

    /// A version that another server serves: what its resources are is known as it tells it.
    fn remote(remote: &RemoteVersion) -> PublishedVersion {
        let known = GroupVersion {
            group: remote.group.as_str().into(),
            version: remote.version.as_str().into(),
            resources: Vec::new(),
        };
        PublishedVersion {
            known: Arc::new(known),
            documents: VersionDocuments::told(&remote.discovery),
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
