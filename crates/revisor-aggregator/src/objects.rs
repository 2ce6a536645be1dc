//! Objects that other servers keep, as controllers ask for them: by their places, in the controllers' own names.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use revisor_proxy::ReceivedBody;
use revisor_proxy::headers::RemoteUser;
use tokio::sync::watch;

use crate::Aggregator;
use crate::aggregator::Fetch;

/// How long a server has for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most that is read of an answer.
const MOST: usize = 32 << 20;

/// How long a watch goes on before it is opened anew (upstream: reflectors, between five and ten minutes).
const WATCHING: Duration = Duration::from_secs(420);

/// What stands for itself in paths and queries.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Objects without what only their servers care about, where servers can do that.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Where objects of another server are.
#[derive(Debug, Clone, Copy)]
pub struct RemotePlace<'a> {
    /// The group of their resource.
    pub group: &'a str,
    /// The version in which it is asked for.
    pub version: &'a str,
    /// Its name.
    pub plural: &'a str,
    /// The namespace; nothing for all of them, and for objects that have none.
    pub namespace: Option<&'a str>,
    /// The object; nothing for all of them.
    pub name: Option<&'a str>,
}

/// What is to be done with objects of another server.
#[derive(Debug, Clone, Copy)]
pub enum RemoteAction<'a> {
    /// To show them, as far as their metadata goes. Of many, up to so many after a token that came with others.
    Show(Option<(usize, &'a str)>),
    /// To delete them, with these options.
    Delete(&'a str),
    /// To change them by this merge patch.
    Patch(&'a str),
}

impl RemotePlace<'_> {
    /// The path of it. Names that would lead elsewhere are refused (upstream: `IsValidPathSegmentName`).
    fn path(&self) -> Result<String, String> {
        let mut path = String::from("/apis");
        let mut add = |part: &str| {
            if part.is_empty() || part == "." || part == ".." || part.contains(['/', '%']) {
                return Err(format!("invalid resource name {part:?}"));
            }
            path.push('/');
            path.extend(utf8_percent_encode(part, ESCAPED));
            Ok(())
        };
        add(self.group)?;
        add(self.version)?;
        if let Some(namespace) = self.namespace {
            add("namespaces")?;
            add(namespace)?;
        }
        add(self.plural)?;
        self.name.map_or(Ok(()), add)?;
        Ok(path)
    }

    fn api_service(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

impl Aggregator {
    /// Tells when other servers may serve something else than before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Has a server do something with its objects. Answers the status code and the body of what it says.
    pub async fn ask(
        &self,
        place: RemotePlace<'_>,
        action: RemoteAction<'_>,
        user: RemoteUser<'_>,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut path = place.path()?;
        let accept = if place.name.is_some() { METADATA } else { METADATA_LIST };
        let (method, body) = match action {
            RemoteAction::Show(page) => {
                if let Some((limit, after)) = page {
                    path = format!("{path}?limit={limit}&continue={}", utf8_percent_encode(after, ESCAPED));
                }
                (Method::GET, None)
            }
            RemoteAction::Delete(options) => (Method::DELETE, Some(("application/json", options))),
            RemoteAction::Patch(patch) => (Method::PATCH, Some(("application/merge-patch+json", patch))),
        };
        let registration = self.available(place)?;
        let remote = registration.remote.as_ref().ok_or("it is served here")?;
        let (known, timeout, most) = (None, TIMEOUT, MOST);
        let fetch = Fetch { method, path: &path, user, accept, known, body, timeout, most };
        let fetched = self.fetch(remote, fetch).await?;
        Ok((fetched.status, fetched.body))
    }

    /// Watches all objects of a resource after a version of the collection. Answers the events as they come, or the status
    /// code of a refusal.
    pub async fn watch(
        &self,
        place: RemotePlace<'_>,
        after: &str,
        user: RemoteUser<'_>,
    ) -> Result<Result<(ReceivedBody, Duration), StatusCode>, String> {
        let registration = self.available(place)?;
        let remote = registration.remote.as_ref().ok_or("it is served here")?;
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
            place.path()?,
            utf8_percent_encode(after, ESCAPED),
            WATCHING.as_secs(),
        );
        let (method, accept, known, body) = (Method::GET, METADATA, None, None);
        let fetch = Fetch { method, path: &path, user, accept, known, body, timeout: TIMEOUT, most: MOST };
        let response = self.open(remote, &fetch).await?;
        Ok(match response.status() {
            // A server that has lost its way does not end by itself.
            StatusCode::OK => Ok((response.into_body(), WATCHING + TIMEOUT)),
            code => Err(code),
        })
    }

    fn available(&self, place: RemotePlace<'_>) -> Result<std::sync::Arc<crate::Registration>, String> {
        let name = place.api_service();
        let registration = self.book().get(&name).cloned().ok_or_else(|| format!("there is no APIService {name}"))?;
        if registration.is_available { Ok(registration) } else { Err(format!("{name} is not available")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_objects_and_nowhere_else() {
        let place = |namespace, name| RemotePlace { group: "a.io", version: "v1", plural: "lamps", namespace, name };
        for (namespace, name, want) in [
            (Some("n"), Some("x"), Some("/apis/a.io/v1/namespaces/n/lamps/x")),
            (None, Some("system:x"), Some("/apis/a.io/v1/lamps/system:x")),
            (None, None, Some("/apis/a.io/v1/lamps")),
            (None, Some("a?b #c"), Some("/apis/a.io/v1/lamps/a%3Fb%20%23c")),
            (None, Some("a/b"), None),
            (None, Some(".."), None),
            (None, Some("a%2fb"), None),
            (None, Some(""), None),
        ] {
            assert_eq!(place(namespace, name).path().ok().as_deref(), want, "{namespace:?} {name:?}");
        }
    }
}
