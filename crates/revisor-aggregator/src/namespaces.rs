//! Namespaces that are deleted: what other servers have of them goes too (upstream: `namespacedResourcesDeleter`, which
//! finds these resources by discovery like all others).

use std::time::Duration;

use http::{Method, StatusCode};
use revisor_proxy::headers::RemoteUser;
use serde_json::Value;

use crate::Aggregator;
use crate::aggregator::Fetch;
use crate::book::Registration;

/// In whose name content is deleted.
const USER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// How long a server has to delete a collection, or to tell what is left of it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most that is read of an answer.
const MOST: usize = 32 << 20;

/// What is left of a namespace on other servers.
#[derive(Debug, Default)]
pub struct RemoteContent {
    /// Groups and versions of which nobody knows what they have.
    pub undiscovered: Vec<String>,
    /// How many objects there are of each resource that has some.
    pub remaining: Vec<(String, usize)>,
    /// What could not be deleted, and why.
    pub errors: Vec<String>,
}

impl Aggregator {
    /// Deletes everything that other servers have in a namespace, and finds out what is left.
    pub async fn empty_namespace(&self, namespace: &str) -> RemoteContent {
        let (book, knowledge) = (self.book(), self.knowledge());
        let mut left = RemoteContent::default();
        let mut remotes: Vec<_> = book.all().filter(|known| known.remote.is_some()).collect();
        remotes.sort_by(|one, two| one.name.cmp(&two.name));
        for registration in remotes {
            let version = knowledge.known.get(&registration.name).map(|known| &known.version);
            let Some(version) = version.filter(|version| version["freshness"] == "Current") else {
                left.undiscovered.push(format!("{}/{}", registration.group, registration.version));
                continue;
            };
            for resource in version["resources"].as_array().into_iter().flatten() {
                let has =
                    |verb: &str| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|it| it == verb));
                if resource["scope"] == "Namespaced" && has("deletecollection") && has("list") {
                    let plural = resource["resource"].as_str().unwrap_or_default();
                    self.empty_collection(registration, namespace, plural, &mut left).await;
                }
            }
        }
        left
    }

    async fn empty_collection(
        &self,
        registration: &Registration,
        namespace: &str,
        plural: &str,
        left: &mut RemoteContent,
    ) {
        let path = format!("{}/namespaces/{namespace}/{plural}", registration.path());
        let deleted = self.ask_as_controller(registration, Method::DELETE, &path).await;
        if let Err(error) = deleted {
            return left.errors.push(error);
        }
        match self.ask_as_controller(registration, Method::GET, &path).await {
            Ok(list) => {
                let count = list["items"].as_array().map_or(0, Vec::len);
                if count > 0 {
                    left.remaining.push((format!("{plural}.{}", registration.group), count));
                }
            }
            Err(error) => left.errors.push(error),
        }
    }

    async fn ask_as_controller(
        &self,
        registration: &Registration,
        method: Method,
        path: &str,
    ) -> Result<Value, String> {
        let Some(remote) = &registration.remote else { return Ok(Value::Null) };
        let groups =
            ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"].map(str::to_owned);
        let user = RemoteUser { name: USER, uid: None, groups: &groups, extra: &[] };
        let (known, timeout, most) = (None, TIMEOUT, MOST);
        let fetch = Fetch { method, path, user, accept: "application/json", known, body: None, timeout, most };
        let fetched = self.fetch(remote, fetch).await?;
        match fetched.status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(Value::Null),
            code if code.is_success() => serde_json::from_slice(&fetched.body).map_err(|error| error.to_string()),
            code => Err(format!("{path}: {}", code.as_u16())),
        }
    }
}
