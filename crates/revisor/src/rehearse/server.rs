//! [`ServerSource`]: the objects of a live server, through its API.
//!
//! What is stored is not shown there, only what versions make of it. So an object is looked at as a version shows it: the
//! one that is stored, if that is served; and where something else than its name tells versions apart, in each of them. In
//! which version an object is stored, and what is kept beside it, is not known.

use std::collections::HashSet;

use anyhow::Context;
use revisor_object::{Object, Value};
use revisor_registry::{Rehearsal, SeenRequests, Stored};

use super::{Seen, Source};
use crate::cluster::{Cluster, ClusterFlags, Served};

/// What this program calls itself when it asks a server, whatever its version.
const USER_AGENT_PREFIX: &str = "revisor/";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONVERSIONS: &str = "/apis/versioning.revisor.dev/v1alpha1/conversions";
const VERSION_REPORTS: &str = "/apis/versioning.revisor.dev/v1alpha1/versionreports";

/// The metric that tells which deprecated versions were asked for.
const DEPRECATED: &str = "apiserver_requested_deprecated_apis{";

/// A live server.
pub(super) struct ServerSource(Cluster);

impl ServerSource {
    /// Nothing is asked of the server yet.
    pub(super) fn open(flags: &ClusterFlags) -> anyhow::Result<ServerSource> {
        Ok(ServerSource(Cluster::open(flags)?))
    }

    /// The objects of a list, with the type that lists leave out; none if there is no such list.
    async fn all(&self, path: &str, api_version: &str, kind: &str) -> anyhow::Result<Vec<Object>> {
        let mut found = Vec::new();
        match self.0.list(path, |object| found.push(typed(object, api_version, kind))).await {
            Err(error) if error.code() == Some(404) => Ok(Vec::new()),
            listed => listed.map(|()| found).with_context(|| format!("cannot list {path}")),
        }
    }

    /// Everything that is stored and can be listed, in all versions.
    async fn discover(&self) -> anyhow::Result<Vec<Served>> {
        let found = self.0.discover().await.context("cannot ask which resources there are")?;
        for (path, error) in &found.left_out {
            crate::complain(&format!("revisor: note: {path} is left out: {error}"));
        }
        let is_stored = |served: &Served| served.can("list") && served.can("watch");
        Ok(found.served.into_iter().filter(is_stored).collect())
    }

    /// Shows all objects of a resource in a version; answers how many there are.
    async fn look_through(
        &self,
        resource: &Served,
        rehearsal: &Rehearsal,
        look: &mut dyn FnMut(Seen<'_>),
    ) -> anyhow::Result<usize> {
        let Served { group, plural, kind, namespaced, .. } = resource;
        let (path, api_version) = (resource.path(None), resource.api_version());
        let mut count = 0;
        let listed = self.0.list(&path, |object| {
            count += 1;
            let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
            let namespace = namespaced.then(|| text("namespace"));
            let key = rehearsal.key(group, plural, namespace, text("name"));
            look(Seen::Shown(&key, typed(object, &api_version, kind)));
        });
        match listed.await {
            // Gone since discovery told of it.
            Err(error) if error.code() == Some(404) => Ok(0),
            listed => listed.map(|()| count).with_context(|| format!("cannot list {path}")),
        }
    }

    /// What the metrics tell of deprecated versions that were asked for.
    async fn deprecated(&self) -> Vec<SeenRequests> {
        match self.0.text("/metrics").await {
            Ok(text) => text.lines().filter_map(deprecated_request).collect(),
            Err(error) => {
                crate::complain(&format!(
                    "revisor: note: which deprecated versions were asked for is not known: {error}"
                ));
                Vec::new()
            }
        }
    }
}

impl Source for ServerSource {
    async fn stored(&self) -> anyhow::Result<Stored> {
        Ok(Stored {
            definitions: self.all(DEFINITIONS, "apiextensions.k8s.io/v1", "CustomResourceDefinition").await?,
            conversions: self.all(CONVERSIONS, "versioning.revisor.dev/v1alpha1", "Conversion").await?,
        })
    }

    async fn objects(&self, rehearsal: &Rehearsal, look: &mut dyn FnMut(Seen<'_>)) -> anyhow::Result<usize> {
        let mut served = self.discover().await?;
        let mut count = 0;
        let mut looked_at = HashSet::new();
        while let Some(Served { group, plural, .. }) = served.first() {
            let is_it = |known: &Served| (&known.group, &known.plural) == (group, plural);
            let (versions, others): (Vec<Served>, Vec<Served>) = {
                let marks: Vec<bool> = served.iter().map(is_it).collect();
                let (mine, rest): (Vec<_>, Vec<_>) = served.drain(..).zip(marks).partition(|(_, mine)| *mine);
                let plain = |marked: Vec<(Served, bool)>| marked.into_iter().map(|(one, _)| one).collect();
                (plain(mine), plain(rest))
            };
            served = others;
            let (group, plural) = (versions[0].group.clone(), versions[0].plural.clone());
            // Some resources are two names for the same objects.
            if !looked_at.insert(rehearsal.key(&group, &plural, None, "")) {
                continue;
            }
            let names: Vec<&str> = versions.iter().map(|known| known.version.as_str()).collect();
            for version in rehearsal.telling(&group, &plural, &names) {
                let known = versions.iter().find(|known| known.version == version);
                if let Some(known) = known {
                    count += self.look_through(known, rehearsal, look).await?;
                }
            }
        }
        Ok(count)
    }

    async fn requests(&self) -> anyhow::Result<Vec<SeenRequests>> {
        let mut seen = self.deprecated().await;
        for report in self.all(VERSION_REPORTS, "versioning.revisor.dev/v1alpha1", "VersionReport").await? {
            seen.extend(SeenRequests::reported(&report));
        }
        // Those of this command and its like, when they looked before.
        seen.retain(|seen| !seen.agent.starts_with(USER_AGENT_PREFIX));
        Ok(seen)
    }
}

/// An object with the type that items of lists leave out.
fn typed(mut object: Object, api_version: &str, kind: &str) -> Object {
    object.insert("apiVersion", api_version);
    object.insert("kind", kind);
    object
}

/// The requests that a line of metrics tells of: `name{group="",…} 1`.
fn deprecated_request(line: &str) -> Option<SeenRequests> {
    let (labels, value) = line.strip_prefix(DEPRECATED)?.rsplit_once("} ")?;
    let label = |name: &str| {
        let (_, rest) = labels.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    (value.trim() != "0").then(|| SeenRequests {
        group: label("group").unwrap_or_default(),
        version: label("version").unwrap_or_default(),
        plural: label("resource").unwrap_or_default(),
        is_warned: true,
        ..SeenRequests::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecated_requests_are_read_from_metrics() {
        let labels = r#"group="batch",removed_release="1.25",resource="cronjobs",subresource="",version="v1beta1""#;
        for (line, want) in [
            (format!("apiserver_requested_deprecated_apis{{{labels}}} 1"), Some(("batch", "v1beta1", "cronjobs"))),
            (format!("apiserver_requested_deprecated_apis{{{labels}}} 0"), None),
            (format!("apiserver_request_total{{{labels}}} 1"), None),
            ("# HELP apiserver_requested_deprecated_apis Gauge".to_owned(), None),
            ("apiserver_requested_deprecated_apis{".to_owned(), None),
        ] {
            let read = deprecated_request(&line);
            let read = read.as_ref().map(|seen| (&*seen.group, &*seen.version, &*seen.plural));
            assert_eq!(read, want, "{line}");
        }
    }
}
