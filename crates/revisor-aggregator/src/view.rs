//! [`View`]: what clients are told of the servers behind this one, at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::book::{Book, Registration};
use crate::knowledge::Knowledge;

/// What clients are told. A new one is made when something changes; the same is the same.
#[derive(Debug, Default)]
pub struct View {
    book: Arc<Book>,
    knowledge: Arc<Knowledge>,
    /// The highest that any APIService of a group says.
    group_priorities: HashMap<String, i64>,
}

/// A version that another server serves.
#[derive(Debug, Clone)]
pub struct RemoteVersion {
    /// Its group.
    pub group: String,
    /// Its name.
    pub version: String,
    /// What stands of it in aggregated discovery.
    pub discovery: Value,
}

impl View {
    pub(crate) fn new(book: Arc<Book>, knowledge: Arc<Knowledge>) -> View {
        let mut group_priorities: HashMap<String, i64> = HashMap::new();
        for known in book.all() {
            let highest = group_priorities.entry(known.group.clone()).or_default();
            *highest = (*highest).max(known.group_priority);
        }
        View { book, knowledge, group_priorities }
    }

    pub(crate) fn is_of(&self, book: &Arc<Book>, knowledge: &Arc<Knowledge>) -> bool {
        Arc::ptr_eq(&self.book, book) && Arc::ptr_eq(&self.knowledge, knowledge)
    }

    /// The APIServices that it is about.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The place of a group among others: higher ones come first.
    pub fn group_priority(&self, group: &str) -> Option<i64> {
        self.group_priorities.get(group).copied()
    }

    /// The place of a version among those of its group.
    pub fn version_priority(&self, group: &str, version: &str) -> Option<i64> {
        Some(self.book.get(&format!("{version}.{group}"))?.version_priority)
    }

    /// The versions that other servers serve, ordered by name.
    pub fn remote_versions(&self) -> Vec<RemoteVersion> {
        let mut remotes: Vec<&Arc<Registration>> = self.book.all().filter(|known| known.remote.is_some()).collect();
        remotes.sort_by(|one, two| one.name.cmp(&two.name));
        let told = |known: &&Arc<Registration>| RemoteVersion {
            group: known.group.clone(),
            version: known.version.clone(),
            discovery: self
                .knowledge
                .known
                .get(&known.name)
                .map_or_else(|| json!({"version": known.version, "freshness": "Stale"}), |known| known.version.clone()),
        };
        remotes.iter().map(told).collect()
    }

    /// The OpenAPI documents that other servers have: by their names, where they are and whose they are. The document of a
    /// version is that of whoever serves it; what else a server tells of is passed over where `is_own` knows it.
    pub fn documents(&self, is_own: impl Fn(&str) -> bool) -> BTreeMap<String, (String, Arc<Registration>)> {
        let mut found = BTreeMap::new();
        for (name, known) in &self.knowledge.known {
            let Some(registration) = self.book.get(name).filter(|found| found.remote.is_some()) else { continue };
            let served = registration.path();
            let served = served.trim_start_matches('/');
            for (document, address) in &known.documents {
                // Of two who have it, the one is asked who serves what it is about.
                if document == served {
                    found.insert(document.clone(), (address.clone(), registration.clone()));
                } else if !is_own(document) && !self.is_of_another(document, name) {
                    found.entry(document.clone()).or_insert_with(|| (address.clone(), registration.clone()));
                }
            }
        }
        found
    }

    fn is_of_another(&self, document: &str, name: &str) -> bool {
        let path = format!("/{document}/");
        self.book.remote_of(&path).is_some_and(|other| other.name != name)
    }

    /// What other servers add to the Swagger document.
    pub fn swagger_parts(&self) -> Vec<Arc<Value>> {
        let known = self.knowledge.known.iter().filter(|(name, _)| self.book.get(name).is_some());
        known.filter_map(|(_, known)| known.swagger.as_ref().map(|(_, part)| part.clone())).collect()
    }
}
