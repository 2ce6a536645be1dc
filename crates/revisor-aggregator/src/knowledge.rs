//! [`Knowledge`]: what the servers say of themselves, as far as they were asked (upstream: `discoveryManager`, the OpenAPI
//! aggregators).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::header::{CONTENT_TYPE, ETAG};
use http::{Method, StatusCode};
use revisor_proxy::headers::RemoteUser;
use serde_json::{Value, json};

use crate::Aggregator;
use crate::aggregator::{Fetch, Fetched};
use crate::book::Registration;
use crate::legacy_discovery::version_of_list;
use crate::remote::Remote;
use crate::swagger::part_of;

/// How long a server has for a document of discovery, and for one of OpenAPI.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
const OPENAPI_TIMEOUT: Duration = Duration::from_secs(60);

/// The most that is read of a document.
const MOST: usize = 32 << 20;

/// Discovery of everything at once, in the forms that there are of it.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// What is known of all servers, by the names of their APIServices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    pub(crate) known: BTreeMap<String, Arc<Known>>,
}

/// What a server says of its version.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    /// What stands of it in aggregated discovery.
    pub(crate) version: Value,
    /// Where its OpenAPI documents are, by their names.
    pub(crate) documents: BTreeMap<String, String>,
    /// What it adds to the Swagger document, and the tag of what that was taken from.
    pub(crate) swagger: Option<(String, Arc<Value>)>,
}

impl Known {
    /// What is known of a server that said nothing.
    fn stale(version: &str) -> Value {
        json!({"version": version, "freshness": "Stale"})
    }
}

impl Aggregator {
    /// Asks a server what it serves and remembers it. Answers whether it could be asked.
    pub(crate) async fn learn(&self, registration: &Registration, remote: &Remote) -> bool {
        let before = self.knowledge().known.get(&registration.name).cloned().unwrap_or_default();
        let discovered = self.discover(registration, remote).await;
        let is_known = discovered.is_ok();
        let version = discovered.unwrap_or_else(|why| {
            tracing::debug!(api_service = registration.name, why, "cannot be discovered");
            Known::stale(&registration.version)
        });
        let mut known = Known { version, ..Known::clone(&before) };
        // What cannot be asked for now is as it was.
        if let Ok(documents) = self.documents(remote).await {
            known.documents = documents;
        }
        if let Some(swagger) = self.swagger(registration, remote, &before).await {
            known.swagger = Some(swagger);
        }
        self.remember(&registration.name, Some(known));
        is_known
    }

    /// Remembers what is known of a server; nothing to forget it.
    pub(crate) fn remember(&self, name: &str, known: Option<Known>) {
        let mut knowledge = self.knowledge.lock().unwrap_or_else(PoisonError::into_inner);
        let old = knowledge.known.get(name);
        if old.map(|old| &**old) == known.as_ref() {
            return;
        }
        let mut changed = Knowledge::clone(&knowledge);
        match known {
            Some(known) => drop(changed.known.insert(name.to_owned(), Arc::new(known))),
            None => drop(changed.known.remove(name)),
        }
        *knowledge = Arc::new(changed);
        drop(knowledge);
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What stands of the version of an APIService in aggregated discovery.
    async fn discover(&self, registration: &Registration, remote: &Remote) -> Result<Value, String> {
        let groups = ["system:masters".to_owned()];
        let user = RemoteUser { name: "system:kube-aggregator", uid: None, groups: &groups, extra: &[] };
        let ask = |path: String, accept: &'static str| async move {
            let (known, timeout) = (None, DISCOVERY_TIMEOUT);
            let fetch =
                Fetch { method: Method::GET, path: &path, user, accept, known, body: None, timeout, most: MOST };
            self.fetch(remote, fetch).await
        };
        let all = ask("/apis".to_owned(), AGGREGATED).await?;
        let Registration { group, version, .. } = registration;
        match all.status {
            StatusCode::OK if is_aggregated(&all) => {
                let document: Value = serde_json::from_slice(&all.body).map_err(|error| error.to_string())?;
                // A server that does not tell of the version serves it without any resources.
                let mut found = version_in(&document, group, version).unwrap_or_else(|| json!({"version": version}));
                complete(&mut found);
                found["freshness"] = json!("Current");
                Ok(found)
            }
            StatusCode::SERVICE_UNAVAILABLE => Err(format!("non-success response code: {}", all.status.as_u16())),
            _ => {
                let path = format!("/apis/{group}/{version}");
                let list = ask(path.clone(), "application/json").await?;
                if list.status != StatusCode::OK {
                    return Err(format!("failed to download legacy discovery for {path}: {}", list.status.as_u16()));
                }
                let list: Value = serde_json::from_slice(&list.body).map_err(|error| error.to_string())?;
                Ok(version_of_list(version, &list))
            }
        }
    }

    /// Where the OpenAPI documents of a server are.
    async fn documents(&self, remote: &Remote) -> Result<BTreeMap<String, String>, String> {
        let fetched = self.ask_openapi(remote, "/openapi/v3", None).await?;
        if fetched.status != StatusCode::OK {
            return Err(format!("could not get list of group versions: {}", fetched.status.as_u16()));
        }
        let root: Value = serde_json::from_slice(&fetched.body).map_err(|error| error.to_string())?;
        let paths = root["paths"].as_object().into_iter().flatten();
        let address = |entry: &Value| entry["serverRelativeURL"].as_str().map(str::to_owned);
        Ok(paths.filter_map(|(name, entry)| Some((name.clone(), address(entry)?))).collect())
    }

    /// What a server adds to the Swagger document; nothing if that is known, or there is none.
    async fn swagger(
        &self,
        registration: &Registration,
        remote: &Remote,
        before: &Known,
    ) -> Option<(String, Arc<Value>)> {
        let known = before.swagger.as_ref().map(|(tag, _)| tag.as_str()).filter(|tag| !tag.is_empty());
        let fetched = self.ask_openapi(remote, "/openapi/v2", known).await.ok()?;
        if fetched.status != StatusCode::OK {
            return None;
        }
        let tag = fetched.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
        let prefix = format!("/apis/{}/{}/", registration.group, registration.version);
        // To read a document of megabytes takes a while.
        let read = tokio::task::spawn_blocking(move || {
            let document: Value = serde_json::from_slice(&fetched.body).ok()?;
            Some(part_of(&document, &prefix))
        });
        Some((tag, Arc::new(read.await.ok()??)))
    }

    async fn ask_openapi(&self, remote: &Remote, path: &str, known: Option<&str>) -> Result<Fetched, String> {
        let user = RemoteUser { name: "system:aggregator", uid: None, groups: &[], extra: &[] };
        let timeout = OPENAPI_TIMEOUT;
        let (method, accept) = (Method::GET, "application/json");
        self.fetch(remote, Fetch { method, path, user, accept, known, body: None, timeout, most: MOST }).await
    }
}

/// Whether a server answered with aggregated discovery.
fn is_aggregated(fetched: &Fetched) -> bool {
    let content_type = fetched.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.contains("as=APIGroupDiscoveryList") && content_type.contains("g=apidiscovery.k8s.io")
}

fn version_in(document: &Value, group: &str, version: &str) -> Option<Value> {
    let groups = document["items"].as_array()?;
    let group = groups.iter().find(|it| it["metadata"]["name"].as_str().unwrap_or_default() == group)?;
    let versions = group["versions"].as_array()?;
    versions.iter().find(|it| it["version"].as_str() == Some(version)).filter(|it| it.is_object()).cloned()
}

/// Some clients cannot do without the kinds of resources, be they empty.
fn complete(version: &mut Value) {
    let complete = |part: &mut Value| {
        if part.is_object() && part["responseKind"].is_null() {
            part["responseKind"] = json!({"group": "", "version": "", "kind": ""});
        }
    };
    let resources = version.get_mut("resources").and_then(Value::as_array_mut);
    for resource in resources.into_iter().flatten() {
        complete(resource);
        let parts = resource.get_mut("subresources").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            complete(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_a_server_tells_of_all() {
        let document = json!({"items": [
            {"metadata": {"name": "a.io"}, "versions": [{"version": "v1", "resources": [{"resource": "things"}]}]},
            {"metadata": {"name": "b.io"}, "versions": [{"version": "v1"}]},
        ]});
        let mut found = version_in(&document, "a.io", "v1").expect("is there");
        complete(&mut found);
        let kind = json!({"group": "", "version": "", "kind": ""});
        assert_eq!(found["resources"][0]["responseKind"], kind);
        let mut bare = version_in(&document, "b.io", "v1").expect("is there");
        complete(&mut bare);
        assert_eq!(bare, json!({"version": "v1"}));
        assert_eq!(version_in(&document, "b.io", "v2"), None);
        assert_eq!(version_in(&json!([]), "b.io", "v2"), None);
    }
}
