//! [`Discovery`]: which resources a cluster serves, in which versions, and what can be done with them.

use revisor_object::Value;

use super::{Cluster, ClusterError};

/// A resource in a version.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    verbs: Vec<String>,
}

impl Served {
    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `pods`, `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Where the objects are, of one namespace or of all of them.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let within = match namespace {
            Some(namespace) if self.namespaced => format!("/namespaces/{namespace}"),
            _ => String::new(),
        };
        format!("{root}/{}{within}/{}", self.api_version(), self.plural)
    }
}

/// What a cluster serves. Subresources are not among it.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// In the order of groups, and in each of them the preferred version first.
    pub(crate) served: Vec<Served>,
    /// Versions that could not be asked for, with the reason: what another server answers for may be away.
    pub(crate) left_out: Vec<(String, ClusterError)>,
}

impl Cluster {
    /// Asks which resources there are, version by version, as every cluster can tell it.
    pub(crate) async fn discover(&self) -> Result<Discovery, ClusterError> {
        let mut versions = vec![(String::new(), "v1".to_owned())];
        let groups = self.get("/apis").await?;
        for group in groups.array("groups").iter().filter_map(Value::as_object) {
            let name = group.str("name").unwrap_or_default();
            let mut known: Vec<&str> =
                group.array("versions").iter().filter_map(|version| version.as_object()?.str("version")).collect();
            let preferred = group.object("preferredVersion").and_then(|version| version.str("version"));
            known.sort_by_key(|version| Some(*version) != preferred);
            versions.extend(known.into_iter().map(|version| (name.to_owned(), version.to_owned())));
        }
        let mut found = Discovery::default();
        for (group, version) in versions {
            let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            let list = match self.get(&path).await {
                Ok(list) => list,
                Err(error @ ClusterError::Refused { .. }) => {
                    found.left_out.push((path, error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            for resource in list.array("resources").iter().filter_map(Value::as_object) {
                let plural = resource.str("name").unwrap_or_default();
                if plural.is_empty() || plural.contains('/') {
                    continue;
                }
                found.served.push(Served {
                    group: group.clone(),
                    version: version.clone(),
                    plural: plural.to_owned(),
                    kind: resource.str("kind").unwrap_or_default().to_owned(),
                    namespaced: resource.get("namespaced") == Some(&Value::Bool(true)),
                    verbs: resource.array("verbs").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                });
            }
        }
        Ok(found)
    }
}
