//! [`Probe`]: the requests that are made of one resource. Objects are asked for as metadata only: versions are all that is
//! looked at, and the content of secrets is nobody's business.

use std::collections::BTreeMap;

use revisor_object::{Object, Value};

use super::position::text_of;
use crate::cluster::{Cluster, ClusterError, Events, Served, escaped};

/// Servers that do not know these forms answer with whole objects, which have the same metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

/// How many objects a page has.
const PAGE: usize = 500;

/// Names and values of a query.
pub(super) type Query<'q> = [(&'q str, &'q str)];

/// One resource of a cluster, in all namespaces or in one.
pub(super) struct Probe<'c> {
    pub(super) cluster: &'c Cluster,
    pub(super) served: &'c Served,
    pub(super) namespace: Option<&'c str>,
    /// How many objects are looked at one by one.
    pub(super) max_objects: usize,
}

/// What a server answers: an object, or no.
pub(super) enum Reply {
    Object(Object),
    Refused { code: u16, error: ClusterError },
}

impl Reply {
    /// Tells refusals, which are answers, from what went wrong on the way.
    pub(super) fn of(answer: Result<Object, ClusterError>) -> Result<Reply, ClusterError> {
        match answer {
            Ok(object) => Ok(Reply::Object(object)),
            Err(error) => match error.code() {
                Some(code) => Ok(Reply::Refused { code, error }),
                None => Err(error),
            },
        }
    }
}

/// A list, with all of its pages.
pub(super) struct Listed {
    /// The version that the first page tells.
    pub(super) version: String,
    /// Versions of further pages, where they differ from that one.
    pub(super) other_versions: Vec<String>,
    /// Objects by namespace and name, with their versions.
    pub(super) objects: BTreeMap<String, String>,
    /// Whether all that are there were looked at.
    pub(super) is_whole: bool,
    pub(super) has_pages: bool,
}

impl Probe<'_> {
    /// The path of a list with a query.
    pub(super) fn list_path(&self, query: &Query<'_>) -> String {
        format!("{}{}", self.served.path(self.namespace), query_text(query))
    }

    /// The path of an object with a query.
    pub(super) fn object_path(&self, key: &str, query: &Query<'_>) -> String {
        let (namespace, name) = key.split_once('/').map_or((None, key), |(namespace, name)| (Some(namespace), name));
        format!("{}/{}{}", self.served.path(namespace.or(self.namespace)), escaped(name), query_text(query))
    }

    pub(super) async fn list(&self, query: &Query<'_>) -> Result<Reply, ClusterError> {
        Reply::of(self.cluster.get_as(&self.list_path(query), METADATA_LIST).await)
    }

    pub(super) async fn get(&self, key: &str, query: &Query<'_>) -> Result<Reply, ClusterError> {
        Reply::of(self.cluster.get_as(&self.object_path(key, query), METADATA).await)
    }

    pub(super) async fn watch(&self, query: &Query<'_>) -> Result<Events, ClusterError> {
        self.cluster.watch(&self.list_path(query), METADATA).await
    }

    /// All pages of a list, as long as there are not too many objects.
    pub(super) async fn list_all(&self, query: &Query<'_>) -> Result<Listed, ClusterError> {
        let limit = PAGE.to_string();
        let mut listed: Option<Listed> = None;
        let mut token = String::new();
        loop {
            let mut asked = vec![("limit", &*limit)];
            // Pages after the first are of the version of the first, and to say more of it is an error.
            match &listed {
                None => asked.extend_from_slice(query),
                Some(_) => asked.push(("continue", &token)),
            }
            let page = self.cluster.get_as(&self.list_path(&asked), METADATA_LIST).await?;
            let version = text_of(&page).to_owned();
            let known = listed.get_or_insert_with(|| Listed {
                version: version.clone(),
                other_versions: Vec::new(),
                objects: BTreeMap::new(),
                is_whole: true,
                has_pages: false,
            });
            if version != known.version && !known.other_versions.contains(&version) {
                known.other_versions.push(version);
            }
            for item in page.array("items").iter().filter_map(Value::as_object) {
                known.objects.insert(key_of(item), text_of(item).to_owned());
            }
            match page.at(&["metadata", "continue"]).and_then(Value::as_str).filter(|token| !token.is_empty()) {
                Some(next) if known.objects.len() < self.max_objects => {
                    known.has_pages = true;
                    next.clone_into(&mut token);
                }
                next => {
                    known.is_whole = next.is_none();
                    if let Some(listed) = listed.take() {
                        return Ok(listed);
                    }
                }
            }
        }
    }
}

/// `namespace/name` of an object, or its name alone.
pub(super) fn key_of(object: &Object) -> String {
    let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

fn query_text(query: &Query<'_>) -> String {
    let mut text = String::new();
    for (name, value) in query {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        text.push_str(&escaped(value));
    }
    text
}
